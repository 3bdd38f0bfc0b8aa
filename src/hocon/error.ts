import type { Origin } from './value.ts';

/** One thing that is wrong, and where. */
export interface Problem {
  readonly origin: Origin;
  readonly sentence: string;
}

/** What loading throws; the message has one `file:line:column: sentence` per line. */
export class HoconError extends Error {
  override readonly name = 'HoconError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const lines = problems.map(({ origin, sentence }) => ({ origin, sentence: onOneLine(sentence) }));
    super(lines.map(describe).join('\n'));
    this.problems = lines;
  }
}

/** Throws a HoconError of one problem. */
export function fail(origin: Origin, sentence: string): never {
  throw new HoconError([{ origin, sentence }]);
}

function describe({ origin, sentence }: Problem): string {
  return `${origin.file}:${origin.line}:${origin.column}: ${sentence}`;
}

/** A key or a file name may hold line ends, terminal control codes, or be as long as the file. */
function onOneLine(sentence: string): string {
  const short = sentence.length > 1000 ? `${sentence.slice(0, 1000)}….` : sentence;
  return short.replace(
    /[\p{Cc}\p{Zl}\p{Zp}]/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
  );
}
