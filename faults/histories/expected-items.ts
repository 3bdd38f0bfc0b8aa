import {
  eventKey,
  isEvent,
  isLogged,
  type Action,
  type MessageChanged,
  type DeliveryKey,
  type HookAction,
  type HookSettings,
  type LogRow,
  type MessageKey,
  type Moment,
  type Posted,
} from './history.ts';

/** A message or an event that a hook gets. `position` is its place in the order of the group. */
export interface ExpectedItem {
  readonly key: DeliveryKey;
  readonly message: MessageKey;
  readonly position: number;
  readonly change: Posted | MessageChanged;
  /** False: the hook may get the item but need not, because its settings changed or a backup was restored. */
  readonly isDue: boolean;
  /** No attempt that begins after this moment may contain the item; null: there is no such moment. */
  readonly notAfter: Moment | null;
}

interface SettingsPeriod {
  readonly from: Moment;
  /**
   * From this moment on, the settings of earlier periods are surely not in force. From `from` until then, the earlier
   * settings or these may be in force.
   */
  readonly surelyFrom: Moment;
  readonly settings: HookSettings;
}

/** The items that one hook has to get, derived from the actions on its group. */
export class ExpectedItems {
  readonly hook: number;
  readonly actions: readonly Action[];
  readonly items: readonly ExpectedItem[];
  readonly registeredAt: Moment;
  readonly #byKey: ReadonlyMap<DeliveryKey, ExpectedItem>;
  readonly #periods: readonly SettingsPeriod[];

  constructor(hook: number, actions: readonly Action[]) {
    this.hook = hook;
    this.actions = actions;
    this.#periods = settingsPeriods(hook, actions);
    this.registeredAt = this.hookActions('registered')[0]!.answered;
    this.items = this.#expect();
    this.#byKey = new Map(this.items.map((item) => [item.key, item]));
  }

  get(key: DeliveryKey): ExpectedItem | undefined {
    return this.#byKey.get(key);
  }

  hookActions<Type extends HookAction['type']>(type: Type): (HookAction & { readonly type: Type })[] {
    return this.actions.filter(
      (action): action is HookAction & { readonly type: Type } => action.type === type && action.hook === this.hook,
    );
  }

  /** All settings that may have been in force at some moment between `from` and `to`. */
  settingsWithin(from: Moment, to: Moment): HookSettings[] {
    return this.#periods
      .filter((period, index) => period.from <= to && (this.#periods[index + 1]?.surelyFrom ?? Infinity) >= from)
      .map(({ settings }) => settings);
  }

  #expect(): ExpectedItem[] {
    const items: ExpectedItem[] = [];
    const ownMessages = new Set<MessageKey>();
    const begins = this.#eventBegins();
    for (const [position, change] of this.actions.entries()) {
      if (!isLogged(change) || change.asked < this.registeredAt) continue;
      if (change.type === 'posted') ownMessages.add(change.message);
      else if (!ownMessages.has(change.message) || !begins.some((begin) => begin < change.asked)) continue;
      const wanted = this.settingsWithin(change.asked, Infinity).map((settings) => isWanted(change, settings));
      if (!wanted.includes(true)) continue;
      const lostAt = undoneAt(change, this.actions);
      const beganAnew = isEvent(change) ? (begins.find((begin) => begin > change.answered) ?? null) : null;
      const notAfter = lostAt ?? beganAnew;
      const key = change.type === 'posted' ? change.message : eventKey(change.rev);
      const isDue = !wanted.includes(false) && notAfter === null;
      items.push({ key, message: change.message, position, change, isDue, notAfter });
    }
    return items;
  }

  /** The moments when the hook began to request events. It gets no event of a change from before the last of them. */
  #eventBegins(): Moment[] {
    const begins: Moment[] = [];
    let asks = false;
    for (const action of this.actions) {
      if (!('hook' in action) || action.hook !== this.hook) continue;
      if (action.type === 'registered' || action.type === 'changed') {
        if (!asks && action.settings.events.length > 0) begins.push(action.answered);
        asks = action.settings.events.length > 0;
      } else if (action.type === 'brought back' && asks) begins.push(action.answered);
    }
    return begins;
  }
}

function settingsPeriods(hook: number, actions: readonly Action[]): SettingsPeriod[] {
  const periods: SettingsPeriod[] = [];
  for (const action of actions) {
    const { asked: from, answered: surelyFrom } = action;
    if ((action.type === 'registered' || action.type === 'changed') && action.hook === hook) {
      periods.push({ from, surelyFrom, settings: action.settings });
    } else if (action.type === 'restored') {
      const { settings } = periods.findLast((period) => period.surelyFrom < action.backupAt)!;
      periods.push({ from, surelyFrom, settings });
    }
  }
  return periods;
}

function isWanted({ type, by }: Posted | MessageChanged, { events, skip }: HookSettings): boolean {
  if (by !== 'user' && skip.includes(by)) return false;
  return type === 'posted' || events.includes(type);
}

/** The moment when a restore of a backup undid the change; null: the change is in force. */
export function undoneAt(change: Action, actions: readonly Action[]): Moment | null {
  const restore = actions.find(
    (action) => action.type === 'restored' && action.backupAt < change.asked && change.asked < action.asked,
  );
  return restore?.answered ?? null;
}

/** Whether a row of the delivery log is about this item. */
export function coversItem(
  { seq, last_seq: lastSeq, rev, last_rev: lastRev }: LogRow,
  { change }: ExpectedItem,
): boolean {
  if (change.type === 'posted') return rev === undefined && isWithin(change.seq, seq, lastSeq);
  return rev !== undefined && isWithin(change.rev.number, rev, lastRev);
}

const isWithin = (number: number, first: number, last = first): boolean => first <= number && number <= last;
