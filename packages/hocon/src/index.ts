/** The public interface of the package. Code outside imports no other file of it. README.md explains it. */

export { coerceToArray } from './array.ts';
export { HoconError, renderSentence } from './error.ts';
export type { Problem, Sentence } from './error.ts';
export { loadHocon } from './load.ts';
export type { LoadOptions, Source } from './load.ts';
export type { HoconWarning, HoconWarningKind } from './warning.ts';
export { valueAt } from './path.ts';
export { durationMs, sizeBytes } from './units.ts';
export type {
  ArrayValue,
  BooleanValue,
  NullValue,
  NumberValue,
  ObjectValue,
  Origin,
  StringValue,
  Value,
} from './value.ts';
