import type { Origin } from './value.ts';

/**
 * A sentence about a problem. What it repeats of the text goes through `quote`, so that whoever shows the sentence can
 * withhold it: the text may be a secret.
 */
export type Sentence = string | ((quote: (text: string) => string) => string);

/** One thing that is wrong, and where. */
export interface Problem {
  readonly origin: Origin;
  readonly sentence: Sentence;
}

/** What stands in the place of text that is withheld. */
const WITHHELD_PLACEHOLDER = '…';

/** The sentence on one line; text of the file is shown only where `isShown` says so. */
export function renderSentence(sentence: Sentence, isShown: (text: string) => boolean): string {
  const rendered =
    typeof sentence === 'string' ? sentence : sentence((text) => (isShown(text) ? text : WITHHELD_PLACEHOLDER));
  return toBoundedLine(rendered);
}

/** What loading throws; the message has one `file:line:column: sentence` per line and withholds nothing. */
export class HoconError extends Error {
  override readonly name = 'HoconError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(describeProblemInFull).join('\n'));
    this.problems = problems;
  }
}

/** Throws a HoconError of one problem. */
export function fail(origin: Origin, sentence: Sentence): never {
  throw new HoconError([{ origin, sentence }]);
}

function describeProblemInFull({ origin, sentence }: Problem): string {
  return `${origin.file}:${origin.line}:${origin.column}: ${renderSentence(sentence, () => true)}`;
}

/** A key or a file name may hold line ends, terminal control codes, or be as long as the file. */
function toBoundedLine(sentence: string): string {
  const short = sentence.length > 1000 ? `${sentence.slice(0, 1000)}….` : sentence;
  return short.replace(
    /[\p{Cc}\p{Zl}\p{Zp}]/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
  );
}
