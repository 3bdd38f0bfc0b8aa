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

/** The rule "Delivery is at least once": a strict hook repeats at most this many accepted requests after a kill. */
const REPEATS_AFTER_KILL = 8;
/**
 * At most this many deliveries of a strict hook are accepted but not settled (recorded in the database), and repeat
 * after a kill.
 */
const MAX_NOT_WRITTEN_DOWN = 8;
/**
 * After a kill, a hook with `none` may repeat this many more than a strict hook: the requests in flight, and those that
 * completed before them.
 */
const REPEATS_AFTER_KILL_NONE = 32;
const REPEATS_AFTER_KILL_EVENTS = 16;
/**
 * After a change of a hook with `none`, at most this many may repeat: requests that overtook one without a connection
 * yet.
 */
const REPEATS_AFTER_CHANGE_NONE = 16;
/** By order: the most requests that can be in flight when a change is answered. */
const MAX_AT_ONCE = { strict: 1, none: 16 } as const;

export function judgeRepeats(history: HookHistory, expected: ExpectedItems): string[] {
  return [...judgeReasons(history, expected), ...judgeRedeliveries(history, expected), ...judgeOnly(history, expected)];
}

/** Reports each accepted item that repeats although no action in between explains the repeat. */
function judgeReasons({ arrivals }: HookHistory, expected: ExpectedItems): string[] {
  const violations: string[] = [];
  const acceptedBy = new Map<DeliveryKey, Arrival>();
  const repeats = new Map<Action, number>();
  for (const arrival of arrivals) {
    const bounded = new Set<Action>();
    for (const { key } of arrival.items) {
      const accepted = acceptedBy.get(key);
      const item = expected.get(key);
      // The first repeat needs an explanation. Then the hook may repeat the item until the receiver accepts it again.
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

/**
 * Whether the request may be the second delivery of a message that was pending when `only` requested it. With `none`
 * such a message comes twice: in its turn and on request.
 */
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

/** An item that the receiver accepted and that arrives again at the moment `to`. */
interface Repeat {
  readonly item: ExpectedItem;
  readonly accepted: Arrival;
  readonly arrivals: readonly Arrival[];
  readonly to: Moment;
}

/** The action after an item's acceptance that explains its repeat. An action that requests the item has priority. */
function reasonOf(repeat: Repeat, expected: ExpectedItems): Action | null {
  const since = expected.actions.filter((action) => action.asked < repeat.to && isSince(action, repeat, expected));
  const asking = since.find((action) => isAskedFor(action, repeat, expected));
  return asking ?? since.findLast((action) => allowedRepeats(action, expected) > 0) ?? null;
}

/** Whether the action came after the acceptance of the item, or while the accepted request was in flight. */
function isSince(action: Action, { item, accepted, arrivals }: Repeat, expected: ExpectedItems): boolean {
  const { answered } = action;
  if (answered > accepted.arrived) return true;
  if (!('hook' in action)) return false;
  const meanwhile = arrivals.filter(({ arrived }) => answered < arrived && arrived <= accepted.arrived);
  const taken = meanwhile.filter((each) => isAccepted(each) && each.items.some(({ key }) => key === item.key));
  // Of several accepted requests with the item, only the first can have been in flight during the action.
  if (taken.length > 1) return false;
  const orders = expected.settingsWithin(0, answered).map(({ order }) => MAX_AT_ONCE[order]);
  return meanwhile.length <= Math.max(...orders) || isFailedBatchFromBefore(action, { accepted, arrivals }, expected);
}

/**
 * Whether the accepted request is a failed batch from before the action. Such a batch repeats unchanged, also if `from`
 * requests a part of it.
 */
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

/** The number of requests that may repeat after an action which does not request them. */
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

/** The position of a message in the order of the group. Infinity for a message that does not exist. */
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

/**
 * Checks where a redelivery `from` a message began: at the first message from there on that the hook may get, or
 * earlier at a pending one.
 */
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

/**
 * The messages that a hook can get at a moment, oldest first. Messages from before its registration and removed ones
 * are left out.
 */
function messagesThere(expected: ExpectedItems, at: Moment): Posted[] {
  const firstSeq = firstSeqOf(expected.actions.filter(({ answered }) => answered <= at));
  return expected.actions.filter((action): action is Posted => {
    if (action.type !== 'posted' || action.asked < expected.registeredAt || action.answered > at) return false;
    return action.seq >= firstSeq && !((undoneAt(action, expected.actions) ?? Infinity) <= at);
  });
}

/**
 * Whether an item need no longer come: a restore or a skip on request came after `since`, or the item was
 * dead-lettered, expired or removed.
 */
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
 * The moment from which an accepted delivery fulfils an `only` request. Deliveries of a strict hook shortly before
 * `only` may not be settled yet, and then count as pending. Here these are the deliveries since the last action on the
 * group, which waited for the database too.
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
