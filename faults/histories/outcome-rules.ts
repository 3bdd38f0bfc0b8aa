import { coversItem, undoneAt, type ExpectedItem, type ExpectedItems } from './expected-items.ts';
import {
  compareEpochNumbers,
  isAccepted,
  isEvent,
  seqOf,
  type Arrival,
  type EpochNumber,
  type History,
  type HookHistory,
  type LogRow,
  type MessageKey,
} from './history.ts';
import { firstSeqOf, isRefused } from './order-rules.ts';

const REFUSALS_UNTIL_SET_ASIDE = 5;
/** Outcomes in the delivery log of items that a hook did not get. */
const GIVEN_UP: readonly string[] = ['skipped', 'expired', 'dead_lettered'];

export function judgeOutcome(history: History, hook: HookHistory, expected: ExpectedItems): string[] {
  const missing = expected.items.filter((item) => item.isDue && isMissing(item, hook, expected));
  const violations = missing.map((item) => `${item.key} was not delivered, and the log does not say why`);
  if (hook.pending > 0) violations.push(`${hook.pending} are pending in the end`);
  if (hook.log.some(({ outcome, rev }) => outcome === 'expired' && rev !== undefined)) {
    if (!history.notices.includes('hook_events_expired')) violations.push('no notice tells of the events that expired');
  }
  return [
    ...violations,
    ...judgeLog(hook, expected),
    ...judgeFinalState(history, hook, expected),
    ...judgeHandled(hook, expected),
  ];
}

function isMissing(item: ExpectedItem, { arrivals, log }: HookHistory, expected: ExpectedItems): boolean {
  if (arrivals.some((arrival) => isAccepted(arrival) && arrival.items.some(({ key }) => key === item.key)))
    return false;
  return !isExplainedOrRemoved(item, log, expected);
}

/**
 * Whether the log explains why the item was not delivered. No row is needed for an event whose message retention
 * removed.
 */
function isExplainedOrRemoved(item: ExpectedItem, log: readonly LogRow[], expected: ExpectedItems): boolean {
  if (log.some((row) => GIVEN_UP.includes(row.outcome) && coversItem(row, item))) return true;
  return isEvent(item.change) && seqOf(item.message).number < firstSeqOf(expected.actions);
}

function judgeLog({ arrivals, log }: HookHistory, expected: ExpectedItems): string[] {
  return log.flatMap((row) => {
    const range =
      row.rev === undefined ? `${row.seq}-${row.last_seq ?? row.seq}` : `r${row.rev}-${row.last_rev ?? row.rev}`;
    // Items that a restore undid are left out: later items have the same numbers.
    const standing = expected.items.filter(({ change }) => undoneAt(change, expected.actions) === null);
    const items = standing.filter((item) => coversItem(row, item));
    switch (row.outcome) {
      case 'skipped':
        return expected.hookActions('discarded backlog').length > 0
          ? []
          : [`${range} was skipped, and nobody asked for it`];
      case 'expired':
        return mayExpire(row, expected) ? [] : [`${range} expired, and was not removed`];
      case 'dead_lettered':
        return items.every((item) => mayBeSetAside(item, arrivals))
          ? []
          : [`${range} was given up without being refused`];
      case 'delivered':
        return wasAccepted(row, arrivals) ? [] : [`${range} is called delivered, and was not accepted`];
      case 'failed':
      case 'unregistered':
        return [];
      default:
        return [`${range} has the unknown outcome ${row.outcome}`];
    }
  });
}

function mayExpire({ seq, last_seq: lastSeq, rev, last_rev: lastRev }: LogRow, { actions }: ExpectedItems): boolean {
  if (rev === undefined) return (lastSeq ?? seq) < firstSeqOf(actions);
  return actions.some((action) => action.type === 'events expired' && (lastRev ?? rev) <= action.lastRev);
}

/** Whether the item was refused five times, or offered after such an item. */
function mayBeSetAside({ key }: ExpectedItem, arrivals: readonly Arrival[]): boolean {
  const refused = arrivals.filter((arrival) => isRefused(arrival) && arrival.items.some((item) => item.key === key));
  if (refused.length >= REFUSALS_UNTIL_SET_ASIDE) return true;
  return refused.length > 0 && arrivals.filter(isRefused).length > REFUSALS_UNTIL_SET_ASIDE;
}

function wasAccepted(
  { seq, rev, last_seq: lastSeq, last_rev: lastRev }: LogRow,
  arrivals: readonly Arrival[],
): boolean {
  const [first, last] = rev === undefined ? [seq, lastSeq ?? seq] : [rev, lastRev ?? rev];
  const range = `${rev === undefined ? '' : 'r'}${first === last ? first : `${first}-${last}`}`;
  // The id of a batch stays the same if the hook leaves some of its items out. Hook and group precede the range in the
  // id.
  return arrivals.some((arrival) => isAccepted(arrival) && arrival.webhookId.split('_')[2]?.split('.')[0] === range);
}

function judgeFinalState(
  history: History,
  { arrivals, log, messages }: HookHistory,
  expected: ExpectedItems,
): string[] {
  const violations: string[] = [];
  const oldest = leastStates(expected, log);
  for (const [message, least] of oldest) {
    const final = history.messages.get(message);
    if (final === undefined) continue;
    const held = messages.get(message);
    if (held === undefined) {
      violations.push(`the receiver does not hold message ${message} in the end`);
      continue;
    }
    if (compareEpochNumbers(held.rev, least) < 0) {
      violations.push(
        `the receiver holds message ${message} at rev ${held.rev.number}, and was to be told of rev ${least.number}`,
      );
    }
    const isFinal = compareEpochNumbers(held.rev, final.rev) === 0;
    if (isFinal && (held.text !== final.text || held.deleted !== final.deleted)) {
      violations.push(`the receiver holds message ${message} at its last rev in another state`);
    }
  }
  for (const message of messages.keys()) {
    const wasSent = arrivals.some(
      (arrival) => isAccepted(arrival) && arrival.items.some((item) => item.message === message),
    );
    if (!wasSent) violations.push(`the receiver holds message ${message}, which was not delivered`);
  }
  return violations;
}

/** By message: the oldest state that the receiver may show in the end. */
function leastStates(expected: ExpectedItems, log: readonly LogRow[]): Map<MessageKey, EpochNumber> {
  const least = new Map<MessageKey, EpochNumber>();
  for (const item of expected.items) {
    const { change, message, isDue } = item;
    if (!isDue || undoneAt(change, expected.actions) !== null || isExplainedOrRemoved(item, log, expected)) continue;
    const known = least.get(message);
    if (known === undefined || compareEpochNumbers(known, change.rev) < 0) least.set(message, change.rev);
  }
  return least;
}

/**
 * Checks that the receiver handled nothing twice and missed nothing. It compares numbers, as docs/reverse-webhooks.md
 * says for `strict`.
 */
function judgeHandled({ arrivals, handled }: HookHistory, expected: ExpectedItems): string[] {
  const violations: string[] = [];
  const counted = new Set<string>();
  for (const key of handled) {
    if (counted.has(key)) violations.push(`${key} was handled twice`);
    counted.add(key);
  }
  const newest = { message: { epoch: 0, number: 0 }, event: { epoch: 0, number: 0 } };
  for (const { key, seq, eventRev } of arrivals.filter(isAccepted).flatMap(({ items }) => items)) {
    const kind = eventRev === null ? 'message' : 'event';
    const number = eventRev ?? seq;
    if (compareEpochNumbers(number, newest[kind]) <= 0) continue;
    newest[kind] = number;
    if (expected.get(key) !== undefined && !counted.has(key))
      violations.push(`${key} arrived in its order and was not handled`);
  }
  return violations;
}
