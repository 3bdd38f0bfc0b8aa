import { Argument } from 'commander';
import { wholeNumber } from '../core/options.ts';

const MAX_INT32 = 2_147_483_647;

/** An argument of a command that selects a hook by its number. */
export function hookNumberArgument(): Argument {
  return new Argument('<hook>', 'the number of a reverse webhook').argParser(wholeNumber(1, MAX_INT32));
}

/** A number of messages with its verb: `1 message is`, `12 messages are`. */
export function messageCountWithVerb(count: number): string {
  return count === 1 ? '1 message is' : `${count} messages are`;
}

/**
 * The messages or events of an attempt as text: `7:42` or `7:42-45` for messages; `7:42 r57` or `r57-60` for events,
 * which are numbered by rev.
 */
export function attemptedRange(attempt: {
  readonly message_id: string;
  readonly seq: number;
  readonly last_seq: number;
  readonly rev?: number | undefined;
  readonly last_rev?: number | undefined;
}): string {
  const { message_id: id, seq, last_seq: last, rev, last_rev: lastRev } = attempt;
  if (rev === undefined) return seq === last ? id : `${id}-${last}`;
  return rev === lastRev ? `${id} r${rev}` : `r${rev}-${lastRev}`;
}
