import type { HoconWarning, HoconWarningKind } from '../../packages/hocon/src/index.ts';
import type { ConfigProblem } from './problem.ts';

const ODDITY_SENTENCES: Readonly<Record<HoconWarningKind, string>> = {
  'cut-by-comment': 'ends where # or // begins a comment: put the value in double quotes if that is part of it',
  'quotes-removed': 'is put together of text with quotes and without: the quotes are no part of the value',
  'quoted-substitution': 'holds ${…} in quotes, where it stays as it is: write it outside of the quotes',
  'missing-include': 'includes a file that is not there',
};

/** Makes warnings about HOCON that is valid but probably not intended. */
export function syntaxWarnings(hoconWarnings: readonly HoconWarning[]): ConfigProblem[] {
  return hoconWarnings.map(({ kind, origin: { file, line, column }, path }) => {
    const key = path.map((name) => (name.includes('.') ? `"${name}"` : name)).join('.');
    return { file, line, column, key, sentence: ODDITY_SENTENCES[kind] };
  });
}
