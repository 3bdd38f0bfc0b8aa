import type { Origin } from './value.ts';

/**
 * The kinds of warnings:
 * - `cut-by-comment`: a comment begins directly after unquoted text.
 * - `quotes-removed`: quoted text is adjacent to other text.
 * - `quoted-substitution`: `${…}` in quotes stays unchanged.
 * - `missing-include`: the file does not exist.
 */
export type HoconWarningKind = 'cut-by-comment' | 'quotes-removed' | 'quoted-substitution' | 'missing-include';

/** A part of a text that is valid HOCON and probably a mistake. */
export interface HoconWarning {
  readonly kind: HoconWarningKind;
  readonly origin: Origin;
  /** The path of the field with this part; positions in arrays are not part of the path. */
  readonly path: readonly string[];
}
