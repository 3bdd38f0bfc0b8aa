/** The record of one group that a checker judges: what was done to it, and what its receivers got. */

/** A number of one counter over everything that is done and that arrives: a smaller one was earlier. */
export type Moment = number;
/** A message within its group: `42`, and `42.<epoch>` where its epoch is not 0. */
export type MessageKey = string;
/** What a delivery is about: `42` for the message itself, `r61` for an event, each with `.<epoch>` like a message. */
export type DeliveryKey = string;

export type SenderKind = 'user' | 'bot' | 'webhook';
export type EventType = 'message.updated' | 'message.deleted';

export interface HookSettings {
  readonly order: 'strict' | 'none';
  readonly batch: number;
  readonly events: readonly EventType[];
  readonly skip: readonly ('webhook' | 'bot')[];
}

/** Something that was asked for, and had happened by the time of its answer. */
interface Step {
  readonly asked: Moment;
  readonly answered: Moment;
}

/** A number that counts within an epoch; each number of a later epoch is greater. */
export interface EpochNumber {
  readonly epoch: number;
  readonly number: number;
}

export interface Posted extends Step {
  readonly type: 'posted';
  readonly message: MessageKey;
  readonly seq: number;
  readonly rev: EpochNumber;
  readonly text: string;
  readonly by: SenderKind;
}

export interface MessageChanged extends Step {
  readonly type: EventType;
  readonly message: MessageKey;
  readonly rev: EpochNumber;
  /** What the message says since: empty where it was deleted. */
  readonly text: string;
  readonly by: SenderKind;
}

/** What the administrator, or an accident, did to the server or to the group. */
export type ServerAction = Step &
  (
    | { readonly type: 'killed' | 'stopped' }
    /** Everything that was asked between `backupAt` and the restore is undone. */
    | { readonly type: 'restored'; readonly backupAt: Moment }
    /** Retention removed the messages before `firstSeq`. */
    | { readonly type: 'messages removed'; readonly firstSeq: number }
    /** The server forgot the group's events up to this rev, whether they were delivered or not. */
    | { readonly type: 'events expired'; readonly lastRev: number }
  );

/** What was done to one hook, with what the server answered. */
export type HookAction = Step & { readonly hook: number } & (
    | { readonly type: 'registered'; readonly settings: HookSettings }
    | { readonly type: 'changed'; readonly settings: HookSettings }
    | { readonly type: 'paused' | 'resumed' | 'brought back' }
    | {
        readonly type: 'redelivered from';
        readonly message: MessageKey;
        readonly status: number;
        readonly from: MessageKey | null;
      }
    | { readonly type: 'redelivered only'; readonly messages: readonly MessageKey[]; readonly status: number }
    | { readonly type: 'discarded backlog'; readonly status: number; readonly skipped: number }
  );

export type Action = Posted | MessageChanged | ServerAction | HookAction;

/** One message or event of a delivery's body. */
export interface DeliveredItem {
  readonly type: 'message.created' | EventType;
  readonly key: DeliveryKey;
  readonly group: number;
  readonly message: MessageKey;
  readonly seq: EpochNumber;
  /** Of the message's state. */
  readonly rev: EpochNumber;
  /** Of the event; null for a message. */
  readonly eventRev: EpochNumber | null;
  readonly text: string;
  readonly deleted: boolean;
  readonly attachments: number;
}

/** One request of the server to a receiver. */
export interface Arrival {
  readonly hook: number;
  readonly arrived: Moment;
  /** When it was answered, or its connection ended. */
  readonly ended: Moment;
  /** Null: the connection ended without an answer. */
  readonly status: number | null;
  readonly webhookId: string;
  /** It was signed with the hook's secret, not more than five minutes ago. */
  readonly isGenuine: boolean;
  /** The body was an array. */
  readonly isArray: boolean;
  readonly items: readonly DeliveredItem[];
}

/** A row of the delivery log, as the server shows it. */
export interface LogRow {
  readonly outcome: string;
  readonly seq: number;
  readonly last_seq?: number;
  readonly rev?: number;
  readonly last_rev?: number;
}

/** What a receiver knows of a message. */
export interface MessageState {
  readonly rev: EpochNumber;
  readonly text: string;
  readonly deleted: boolean;
}

/** Everything about one hook. */
export interface HookHistory {
  readonly hook: number;
  readonly arrivals: readonly Arrival[];
  readonly log: readonly LogRow[];
  /** What its receiver holds in the end, and what it handled, in its order. */
  readonly messages: ReadonlyMap<MessageKey, MessageState>;
  readonly handled: readonly DeliveryKey[];
  /** As the server says in the end, when the target accepts everything. */
  readonly pending: number;
}

export interface History {
  readonly group: number;
  /** In the order in which they were done. */
  readonly actions: readonly Action[];
  readonly hooks: readonly HookHistory[];
  /** What the group's messages are in the end. */
  readonly messages: ReadonlyMap<MessageKey, MessageState>;
  /** The kinds of the notices that the group got. */
  readonly notices: readonly string[];
}

export const epochSuffix = (epoch: number): string => (epoch === 0 ? '' : `.${epoch}`);

/** Negative when `a` is older than `b`. */
export function compareEpochNumbers(a: EpochNumber, b: EpochNumber): number {
  return a.epoch === b.epoch ? a.number - b.number : a.epoch - b.epoch;
}

/** The number of a message in its group. */
export function seqOf(message: MessageKey): EpochNumber {
  const [number, epoch] = message.split('.');
  return { number: Number(number), epoch: Number(epoch ?? 0) };
}

export const eventKey = ({ number, epoch }: EpochNumber): DeliveryKey => `r${number}${epochSuffix(epoch)}`;

export const isAccepted = ({ status }: Arrival): boolean => status !== null && status >= 200 && status < 300;

export const isEvent = (action: Action): action is MessageChanged =>
  action.type === 'message.updated' || action.type === 'message.deleted';

export const isLogged = (action: Action): action is Posted | MessageChanged =>
  action.type === 'posted' || isEvent(action);
