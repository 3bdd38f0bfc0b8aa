import { undoneAt, type ExpectedItem, type ExpectedItems } from './expected-items.ts';
import {
  compareEpochNumbers,
  epochSuffix,
  isLogged,
  type Action,
  type Arrival,
  type DeliveredItem,
  type EpochNumber,
  type History,
  type HookHistory,
  type MessageKey,
  type Moment,
} from './history.ts';

interface KnownState {
  readonly rev: EpochNumber;
  readonly text: string;
  readonly deleted: boolean;
  readonly answered: Moment;
  /** The moment when a restore of a backup undid this state; null: none did. */
  readonly undoneAt: Moment | null;
}

const ENDS: readonly Action['type'][] = ['killed', 'stopped', 'restored'];

export function judgeContents(history: History, { arrivals }: HookHistory, expected: ExpectedItems): string[] {
  const states = statesOf(history.actions);
  const violations: string[] = [];
  for (const [index, arrival] of arrivals.entries()) {
    const startedAfter = serverStartedAfter(arrival, history.actions);
    const before = Math.max(startedAfter, attemptBeganAfter(arrivals, index, expected));
    if (!arrival.isGenuine) violations.push(`${arrival.webhookId} was not signed with its secret, or long ago`);
    violations.push(
      ...judgeEnvelope(history.group, arrival, isRest(arrivals, index)),
      ...judgeBatch(arrival, before, expected),
    );
    for (const item of arrival.items) {
      violations.push(...judgeItem(item, { arrival, before, startedAfter, states }, expected));
    }
  }
  return violations;
}

/**
 * The last known moment before the attempt began. A strict hook sends one request at a time, so for it this is the end
 * of the previous request.
 */
function attemptBeganAfter(arrivals: readonly Arrival[], index: number, expected: ExpectedItems): Moment {
  const previous = arrivals[index - 1];
  if (previous === undefined) return expected.registeredAt;
  const settings = expected.settingsWithin(previous.arrived, arrivals[index]!.arrived);
  return settings.every(({ order }) => order === 'strict') ? previous.ended : expected.registeredAt;
}

/**
 * The moment of the last end of a server before this arrival. The server that sent the request started afterwards, so
 * it has read every change from before that end. It may miss a later change for an unspecified time, since a server
 * caches messages.
 */
function serverStartedAfter({ arrived }: Arrival, actions: readonly Action[]): Moment {
  const ends = actions.filter(({ type, answered }) => ENDS.includes(type) && answered < arrived);
  return ends.at(-1)?.answered ?? 0;
}

/** Whether a batch repeats an earlier one under the same id, possibly without items that the hook no longer gets. */
function isRest(arrivals: readonly Arrival[], index: number): boolean {
  const { webhookId, items } = arrivals[index]!;
  return arrivals
    .slice(0, index)
    .some(
      (each) => each.webhookId === webhookId && items.every(({ key }) => each.items.some((item) => item.key === key)),
    );
}

function judgeEnvelope(group: number, { hook, webhookId, items }: Arrival, isRest: boolean): string[] {
  const violations: string[] = [];
  const [first, last] = [items[0], items.at(-1)];
  if (first === undefined || last === undefined) return [`${webhookId} is empty`];
  const numbers = items.map(({ eventRev, seq }) => eventRev ?? seq);
  const { number, epoch } = numbers[0]!;
  const range = items.length === 1 ? `${number}` : `${number}-${numbers.at(-1)!.number}`;
  const id = `${hook}_${group}_${first.eventRev === null ? '' : 'r'}${range}${epochSuffix(epoch)}`;
  if (webhookId !== id && !isRest) violations.push(`${webhookId} should be ${id} by what it carries`);
  if (items.some((item) => (item.eventRev === null) !== (first.eventRev === null))) {
    violations.push(`${webhookId} carries messages and events`);
  }
  if (numbers.some((each) => each.epoch !== epoch)) violations.push(`${webhookId} spans two epochs`);
  if (numbers.some((each, index) => index > 0 && compareEpochNumbers(numbers[index - 1]!, each) >= 0)) {
    violations.push(`${webhookId} is not in its order`);
  }
  for (const item of items) {
    if (item.group !== group) violations.push(`${webhookId} carries a message of group ${item.group}`);
    const key = `${item.seq.number}${epochSuffix(item.seq.epoch)}`;
    if (item.message !== key) violations.push(`${webhookId} names message ${group}:${item.message}, which is ${key}`);
  }
  return violations;
}

function judgeBatch(
  { webhookId, isArray, items, arrived }: Arrival,
  before: Moment,
  expected: ExpectedItems,
): string[] {
  // A failed batch repeats unchanged, so it may be as large as the `batch` of earlier settings allowed.
  const largest = Math.max(...expected.settingsWithin(expected.registeredAt, arrived).map(({ batch }) => batch));
  if (items.length > largest) return [`${webhookId} carries ${items.length}, and batch is ${largest}`];
  const inForce = expected.settingsWithin(before, arrived);
  if (inForce.every(({ batch }) => batch > 1) && !isArray) return [`${webhookId} is no array`];
  if (inForce.every(({ batch }) => batch === 1) && isArray && items.length === 1) return [`${webhookId} is an array`];
  return [];
}

interface Context {
  readonly arrival: Arrival;
  readonly before: Moment;
  /** The server that sent the request started no earlier than this. */
  readonly startedAfter: Moment;
  readonly states: ReadonlyMap<MessageKey, readonly KnownState[]>;
}

function judgeItem(item: DeliveredItem, context: Context, expected: ExpectedItems): string[] {
  const { arrival, before } = context;
  const known = expected.get(item.key);
  const name = `${item.key} in ${arrival.webhookId}`;
  if (known === undefined) return [`${name} is nothing that the hook gets`];
  const violations = judgeState(item, known, context).map((violation) => `${name} ${violation}`);
  const type = known.change.type === 'posted' ? 'message.created' : known.change.type;
  if (item.type !== type) violations.push(`${name} is of type ${item.type}, and was a ${type}`);
  if (item.message !== known.message) violations.push(`${name} is of message ${item.message}, not ${known.message}`);
  if (arrival.arrived < known.change.asked) violations.push(`${name} came before it was asked for`);
  if (known.notAfter !== null && known.notAfter < before) violations.push(`${name} came after it was over`);
  return violations;
}

function judgeState(item: DeliveredItem, known: ExpectedItem, { before, startedAfter, states }: Context): string[] {
  const all = states.get(item.message) ?? [];
  const index = all.findIndex(({ rev }) => compareEpochNumbers(rev, item.rev) === 0);
  const state = all[index];
  const rev = `rev ${item.rev.number}${epochSuffix(item.rev.epoch)}`;
  if (state === undefined) return [`carries ${rev}, which the message never had`];
  const violations: string[] = [];
  if (state.text !== item.text || state.deleted !== item.deleted) violations.push(`carries another state under ${rev}`);
  if (item.deleted && (item.text !== '' || item.attachments > 0)) violations.push('is deleted and carries contents');
  if (compareEpochNumbers(item.rev, known.change.rev) < 0) violations.push(`carries ${rev}, from before its change`);
  if (state.undoneAt !== null && state.undoneAt < before) violations.push(`carries ${rev}, which a restore undid`);
  const newer = all.slice(index + 1).find(({ answered, undoneAt }) => undoneAt === null && answered < startedAfter);
  if (newer !== undefined) {
    violations.push(`carries ${rev}, and was changed to rev ${newer.rev.number} before the server started`);
  }
  return violations;
}

/** All states of each message, oldest first. */
function statesOf(actions: readonly Action[]): Map<MessageKey, KnownState[]> {
  const states = new Map<MessageKey, KnownState[]>();
  for (const action of actions) {
    if (!isLogged(action)) continue;
    const { message, rev, text, type, answered } = action;
    const state = { rev, text, deleted: type === 'message.deleted', answered, undoneAt: undoneAt(action, actions) };
    states.set(message, [...(states.get(message) ?? []), state]);
  }
  return states;
}
