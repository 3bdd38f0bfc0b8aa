import { Argument } from 'commander';
import { formatDuration } from '../../../client/terminal/table.ts';
import { wholeNumber } from '../core/options.ts';

const MAX_INT32 = 2_147_483_647;

/** An argument of a command that selects a hook by its number. */
export function hookNumberArgument(): Argument {
  return new Argument('<hook>', 'the number of a reverse webhook').argParser(wholeNumber(1, MAX_INT32));
}

/** The fields of a failed delivery that say why it failed. */
interface DeliveryError {
  readonly category: string | null;
  readonly code: number | null;
}

const CATEGORY_SENTENCES: Readonly<Record<string, string>> = {
  timeout: 'the target did not answer in time',
  refused: 'the target refused the connection or cannot be reached',
  tls: 'no TLS connection could be made',
  dns: 'the name of the target could not be resolved',
  connection: 'the connection broke',
  signature: 'the server has no key to sign it with (modules.security.server-keys)',
  'address policy': 'the address policy refuses the address (delivery.allow)',
};

/** A sentence for people that says why a delivery failed. */
export function errorSentence({ category, code }: DeliveryError): string {
  if (category === 'status') return code === null ? 'the target answered with an error' : `the target answered ${code}`;
  return CATEGORY_SENTENCES[category ?? ''] ?? `the delivery failed${category === null ? '' : `: ${category}`}`;
}

const REPLY_PROBLEM_SENTENCES: Readonly<Record<string, string>> = {
  'reply too large': 'its reply has more than 256 KiB and was not posted',
  'reply incomplete': 'its reply did not end in time, or broke off, and was not posted',
  'reply unreadable': 'its reply cannot be read and was not posted',
  'reply refused': 'its reply was refused and not posted',
  'reply hop limit': 'its reply was not posted, since the message had passed through too many webhooks (limits.hops)',
  'group archived': 'its reply was not posted, since the group is archived',
};

/** A sentence for people that says why the reply of a target was not posted into the group. */
export function replyProblemSentence(category: string): string {
  return REPLY_PROBLEM_SENTENCES[category] ?? `its reply was not posted: ${category}`;
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

/** How long ago a time was, such as `3 min 20 s ago`. */
export function ago(moment: string, nowMs: number): string {
  return `${formatDuration(nowMs - Date.parse(moment))} ago`;
}
