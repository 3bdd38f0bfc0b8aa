import { coversItem, undoneAt, type ExpectedItem, type ExpectedItems } from './expected-items.ts';
import {
  compareEpochNumbers,
  isAccepted,
  isEvent,
  seqOf,
  type Action,
  type Arrival,
  type DeliveryKey,
  type HookHistory,
  type MessageKey,
  type Moment,
  type Posted,
} from './history.ts';
import { firstSeqOf } from './order-rules.ts';

/** "Delivery is at least once": requests that come again after a kill. */
const REPEATS_AFTER_KILL = 8;
/** Deliveries of a strict hook that are not written down yet: what a kill repeats. */
const MAX_NOT_WRITTEN_DOWN = 8;
/** With `none`: what was on its way, and what was over before that. */
const REPEATS_AFTER_KILL_NONE = 32;
const REPEATS_AFTER_KILL_EVENTS = 16;
/** With `none`, after a change: what overtook a request that waited for its connection. */
const REPEATS_AFTER_CHANGE_NONE = 16;
/** Requests that can be on their way when a change is answered. */
const MAX_AT_ONCE = { strict: 1, none: 16 } as const;

export function judgeRepeats(history: HookHistory, expected: ExpectedItems): string[] {
  return [...judgeReasons(history, expected), ...judgeRedeliveries(history, expected), ...judgeOnly(history, expected)];
}

/** Whatever was accepted and comes again has a reason in between. */
function judgeReasons({ arrivals }: HookHistory, expected: ExpectedItems): string[] {
  const violations: string[] = [];
  const acceptedBy = new Map<DeliveryKey, Arrival>();
  const repeats = new Map<Action, number>();
  for (const arrival of arrivals) {
    const bounded = new Set<Action>();
    for (const { key } of arrival.items) {
      const accepted = acceptedBy.get(key);
      const item = expected.get(key);
      // From here on it is repeated until it is accepted again.
      acceptedBy.delete(key);
      if (accepted === undefined || item === undefined) continue;
      if (isSentBesideItsOrder(item, arrival, { arrivals, expected })) continue;
      const repeat = { item, accepted, arrivals, to: arrival.arrived };
      const reason = reasonOf(repeat, expected);
      if (reason === null) violations.push(`${key} came again in ${arrival.webhookId} without a reason`);
      else if (!isAskedFor(reason, repeat, expected)) bounded.add(reason);
    }
    for (const reason of bounded) repeats.set(reason, (repeats.get(reason) ?? 0) + 1);
    if (isAccepted(arrival)) for (const { key } of arrival.items) acceptedBy.set(key, arrival);
  }
  for (const [reason, count] of repeats) {
    const allowed = allowedRepeats(reason, expected);
    if (count > allowed) violations.push(`${count} requests came again after ${reason.type}, ${allowed} may`);
  }
  return violations;
}

/** With `none` a message that is pending and asked for by `only` comes in both ways. */
function isSentBesideItsOrder(
  { key }: ExpectedItem,
  { arrived }: Arrival,
  { arrivals, expected }: { readonly arrivals: readonly Arrival[]; readonly expected: ExpectedItems },
): boolean {
  return expected.hookActions('redelivered only').some(({ messages, status, asked, answered }) => {
    if (status !== 202 || asked > arrived || !messages.includes(key)) return false;
    if (expected.settingsWithin(asked, answered).every(({ order }) => order === 'strict')) return false;
    const accepted = arrivals.filter(
      (each) =>
        isAccepted(each) && each.ended > asked && each.arrived < arrived && each.items.some((item) => item.key === key),
    );
    return accepted.length === 1;
  });
}

/** An item that was accepted, and comes again. */
interface Repeat {
  readonly item: ExpectedItem;
  readonly accepted: Arrival;
  readonly arrivals: readonly Arrival[];
  readonly to: Moment;
}

/** What was done since an item was accepted that lets it come again; what asks for it goes first. */
function reasonOf(repeat: Repeat, expected: ExpectedItems): Action | null {
  const since = expected.actions.filter((action) => action.asked < repeat.to && isSince(action, repeat, expected));
  const asking = since.find((action) => isAskedFor(action, repeat, expected));
  return asking ?? since.findLast((action) => allowedRepeats(action, expected) > 0) ?? null;
}

/** Whether an action was done since an item was accepted, or the request that was accepted began before it. */
function isSince(action: Action, { item, accepted, arrivals }: Repeat, expected: ExpectedItems): boolean {
  const { answered } = action;
  if (answered > accepted.arrived) return true;
  if (!('hook' in action)) return false;
  const meanwhile = arrivals.filter(({ arrived }) => answered < arrived && arrived <= accepted.arrived);
  const taken = meanwhile.filter((each) => isAccepted(each) && each.items.some(({ key }) => key === item.key));
  // Only the first one that is accepted can have been on its way.
  if (taken.length > 1) return false;
  const orders = expected.settingsWithin(0, answered).map(({ order }) => MAX_AT_ONCE[order]);
  return meanwhile.length <= Math.max(...orders) || isFailedBatchFromBefore(action, { accepted, arrivals }, expected);
}

/** A batch that failed is repeated as it was, also when `from` asks for a part of it. */
function isFailedBatchFromBefore(
  action: Action,
  { accepted, arrivals }: Pick<Repeat, 'accepted' | 'arrivals'>,
  expected: ExpectedItems,
): boolean {
  if (action.type !== 'redelivered from' || accepted.items.length === 1) return false;
  const first = expected.get(accepted.items[0]!.key);
  if (first === undefined || first.position >= positionOf(action.from, expected)) return false;
  return arrivals.some(({ webhookId, arrived }) => webhookId === accepted.webhookId && arrived < action.answered);
}

function isAskedFor(action: Action, { item, accepted }: Repeat, expected: ExpectedItems): boolean {
  if (action.type === 'restored') return accepted.ended > action.backupAt;
  if (!('hook' in action) || action.hook !== expected.hook) return false;
  if (action.type === 'redelivered only') return action.status === 202 && action.messages.includes(item.key);
  return action.type === 'redelivered from' && positionOf(action.from, expected) <= item.position;
}

/** How many requests may come again that nobody asked for. */
function allowedRepeats(action: Action, expected: ExpectedItems): number {
  const settings = expected.settingsWithin(0, action.answered);
  const isNone = settings.some(({ order }) => order === 'none');
  const asks = settings.some(({ events }) => events.length > 0);
  if (action.type === 'killed' || action.type === 'restored' || isOfHook(action, 'redelivered from', expected)) {
    return REPEATS_AFTER_KILL + (isNone ? REPEATS_AFTER_KILL_NONE + (asks ? REPEATS_AFTER_KILL_EVENTS : 0) : 0);
  }
  if (!('hook' in action) || action.hook !== expected.hook) return 0;
  return isNone ? REPEATS_AFTER_CHANGE_NONE : 0;
}

function isOfHook(action: Action, type: Action['type'], { hook }: ExpectedItems): boolean {
  return action.type === type && 'hook' in action && action.hook === hook;
}

/** Where a message stands in the order of the group; behind everything if it is not there. */
function positionOf(message: MessageKey | null, expected: ExpectedItems): number {
  const position = expected.actions.findIndex((action) => action.type === 'posted' && action.message === message);
  return position === -1 ? Infinity : position;
}

function judgeRedeliveries({ arrivals, log }: HookHistory, expected: ExpectedItems): string[] {
  const violations: string[] = [];
  for (const action of expected.hookActions('redelivered from')) {
    const { message, status, from, asked, answered } = action;
    if (status !== 202) {
      violations.push(`a redelivery from ${message} was answered ${status}`);
      continue;
    }
    violations.push(...judgeFirstMessage(action, expected));
    const position = positionOf(from, expected);
    for (const item of expected.items) {
      if (item.position < position || item.change.asked > asked || !item.isDue) continue;
      if (isOverSince(item, asked, { log, expected })) continue;
      const cameAgain = arrivals.some(
        (arrival) => isAccepted(arrival) && arrival.ended > asked && arrival.items.some(({ key }) => key === item.key),
      );
      if (!cameAgain)
        violations.push(`${item.key} did not come again after the redelivery from ${from ?? 'nowhere'} at ${answered}`);
    }
  }
  return violations;
}

/** `from` is moved to what the hook may get, and never passes over what is pending. */
function judgeFirstMessage(
  { message, from, asked }: { readonly message: MessageKey; readonly from: MessageKey | null; readonly asked: Moment },
  expected: ExpectedItems,
): string[] {
  const there = messagesThere(expected, asked);
  const first = there.find((post) => compareEpochNumbers(seqOf(post.message), seqOf(message)) >= 0);
  if (from === null) return first === undefined ? [] : [`a redelivery from ${message} found no message to begin with`];
  if (first !== undefined && compareEpochNumbers(seqOf(from), seqOf(first.message)) > 0) {
    return [`a redelivery from ${message} began at ${from}, behind ${first.message}`];
  }
  if (!there.some((post) => post.message === from)) {
    return [`a redelivery from ${message} began at ${from}, which the hook does not get`];
  }
  return [];
}

/** The messages that a hook can be sent at a moment, oldest first: none from before it, and none that was removed. */
function messagesThere(expected: ExpectedItems, at: Moment): Posted[] {
  const firstSeq = firstSeqOf(expected.actions.filter(({ answered }) => answered <= at));
  return expected.actions.filter((action): action is Posted => {
    if (action.type !== 'posted' || action.asked < expected.registeredAt || action.answered > at) return false;
    return action.seq >= firstSeq && !((undoneAt(action, expected.actions) ?? Infinity) <= at);
  });
}

/** Whether an item need not come any more: it was dropped on request, given up, expired or lost since. */
function isOverSince(
  item: ExpectedItem,
  since: Moment,
  { log, expected }: { readonly log: HookHistory['log']; readonly expected: ExpectedItems },
): boolean {
  if (seqOf(item.message).number < firstSeqOf(expected.actions)) return true;
  if (log.some((row) => row.outcome === 'dead_lettered' && coversItem(row, item))) return true;
  return expected.actions.some((action) => {
    if (action.type === 'events expired') return isEvent(item.change) && item.change.rev.number <= action.lastRev;
    if (action.answered < since) return false;
    return (
      action.type === 'restored' ||
      ('hook' in action && action.hook === expected.hook && action.type === 'discarded backlog')
    );
  });
}

function judgeOnly({ arrivals, log }: HookHistory, expected: ExpectedItems): string[] {
  const violations: string[] = [];
  for (const { messages, status, asked, answered } of expected.hookActions('redelivered only')) {
    const there = messagesThere(expected, asked);
    const mayGet = messages.every((message) => there.some((post) => post.message === message));
    const right = mayGet ? 202 : 400;
    if (status !== right) {
      violations.push(`a redelivery of only ${messages.join(', ')} was answered ${status} instead of ${right}`);
      continue;
    }
    if (status !== 202) continue;
    const since = notWrittenDownSince({ asked, answered }, arrivals, expected);
    for (const message of messages) {
      const item = expected.get(message);
      if (item === undefined || !item.isDue || isOverSince(item, asked, { log, expected })) continue;
      if (!acceptedAfter(arrivals, message, since))
        violations.push(`${message} did not come once more, though asked for by only`);
    }
  }
  return violations;
}

/**
 * What a strict hook got so shortly before `only` that it is not written down counts as what it has still to get: here
 * what it got since the group's last action, which had to wait for the database as well.
 */
function notWrittenDownSince(
  { asked, answered }: Pick<Action, 'asked' | 'answered'>,
  arrivals: readonly Arrival[],
  expected: ExpectedItems,
): Moment {
  if (expected.settingsWithin(asked, answered).every(({ order }) => order === 'none')) return asked;
  const before = arrivals.filter((each) => isAccepted(each) && each.arrived < answered).slice(-MAX_NOT_WRITTEN_DOWN);
  const lastAction = expected.actions.findLast((action) => action.answered <= asked);
  return Math.min(asked, Math.max(before[0]?.arrived ?? asked, lastAction?.asked ?? 0));
}

const acceptedAfter = (arrivals: readonly Arrival[], key: DeliveryKey, moment: Moment): boolean =>
  arrivals.some((each) => isAccepted(each) && each.ended > moment && each.items.some((item) => item.key === key));
