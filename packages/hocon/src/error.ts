import type { Origin } from './value.ts';

/**
 * A sentence about a problem. It quotes parts of the text through `quote`, so that its caller can withhold them: the
 * text may be a secret.
 */
export type Sentence = string | ((quote: (text: string) => string) => string);

/** One problem with its position. */
export interface Problem {
  readonly origin: Origin;
  readonly sentence: Sentence;
}

/** The text that a message shows instead of a withheld text. */
const WITHHELD_PLACEHOLDER = '…';

/** The sentence on one line. Shows a text of the file only if `isShown` returns true for that text. */
export function renderSentence(sentence: Sentence, isShown: (text: string) => boolean): string {
  const rendered =
    typeof sentence === 'string' ? sentence : sentence((text) => (isShown(text) ? text : WITHHELD_PLACEHOLDER));
  return toBoundedLine(rendered);
}

/** The error of a failed load. Its message has one `file:line:column: sentence` per line and withholds nothing. */
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

/** Escapes control codes and cuts long text: keys and file names may contain such codes, or be as long as the file. */
function toBoundedLine(sentence: string): string {
  const short = sentence.length > 1000 ? `${sentence.slice(0, 1000)}….` : sentence;
  return short.replace(
    /[\p{Cc}\p{Zl}\p{Zp}]/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
  );
}
