/** The record of one group that a checker judges: the actions on it, and the requests that its receivers got. */

/** A logical time: the value of one counter that rises with every action and arrival. */
export type Moment = number;
/** A message within its group: `42`, or `42.<epoch>` if its log epoch is not 0. */
export type MessageKey = string;
/**
 * The key of one item of a delivery: `42` for the message with seq 42, `r61` for the event with rev 61. `.<epoch>`
 * follows if the log epoch is not 0.
 */
export type DeliveryKey = string;

export type SenderKind = 'user' | 'bot' | 'webhook';
export type EventType = 'message.updated' | 'message.deleted';

export interface HookSettings {
  readonly order: 'strict' | 'none';
  readonly batch: number;
  readonly events: readonly EventType[];
  readonly skip: readonly ('webhook' | 'bot')[];
}

/** The moments of the request and of the answer of an action. The action happened between them. */
interface Step {
  readonly asked: Moment;
  readonly answered: Moment;
}

/** A number that counts within a log epoch; each number of a later epoch is greater. */
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
  /** The text of the message after this change; empty if the change deleted it. */
  readonly text: string;
  readonly by: SenderKind;
}

/** An action of an administrator, or an accident, that affects the whole server or the group. */
export type ServerAction = Step &
  (
    | { readonly type: 'killed' | 'stopped' }
    /** The restore undid everything that was requested after `backupAt`. */
    | { readonly type: 'restored'; readonly backupAt: Moment }
    /** Retention removed the messages before `firstSeq`. */
    | { readonly type: 'messages removed'; readonly firstSeq: number }
    /** The server removed the group's events up to this rev, delivered or not. */
    | { readonly type: 'events expired'; readonly lastRev: number }
  );

/** An action on one hook, with the server's answer. */
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

/** One message or event in the body of a delivery. */
export interface DeliveredItem {
  readonly type: 'message.created' | EventType;
  readonly key: DeliveryKey;
  readonly group: number;
  readonly message: MessageKey;
  readonly seq: EpochNumber;
  /** The rev of the state of the message that the item shows. */
  readonly rev: EpochNumber;
  /** The rev of the event; null for a message. */
  readonly eventRev: EpochNumber | null;
  readonly text: string;
  readonly deleted: boolean;
  readonly attachments: number;
}

/** One request of the server to a receiver. */
export interface Arrival {
  readonly hook: number;
  readonly arrived: Moment;
  /** The moment of the answer, or of the end of the connection. */
  readonly ended: Moment;
  /** Null: the connection ended without an answer. */
  readonly status: number | null;
  readonly webhookId: string;
  /** Whether the hook's secret signed the request at most five minutes before it arrived. */
  readonly isGenuine: boolean;
  /** Whether the body was a JSON array. */
  readonly isArray: boolean;
  readonly items: readonly DeliveredItem[];
}

/** A row of the delivery log in the server's answer. */
export interface LogRow {
  readonly outcome: string;
  readonly seq: number;
  readonly last_seq?: number;
  readonly rev?: number;
  readonly last_rev?: number;
}

/** The state of a message at a receiver or in the database. */
export interface MessageState {
  readonly rev: EpochNumber;
  readonly text: string;
  readonly deleted: boolean;
}

/** The record of one hook in a history. */
export interface HookHistory {
  readonly hook: number;
  readonly arrivals: readonly Arrival[];
  readonly log: readonly LogRow[];
  /**
   * The final state of each message at the receiver. `handled`: the items in the order in which the receiver handled
   * them.
   */
  readonly messages: ReadonlyMap<MessageKey, MessageState>;
  readonly handled: readonly DeliveryKey[];
  /**
   * The server's last count of items that are pending for the hook, counted when the target accepted everything again.
   */
  readonly pending: number;
}

export interface History {
  readonly group: number;
  /** The actions on the group and on the server, in their order. */
  readonly actions: readonly Action[];
  readonly hooks: readonly HookHistory[];
  /** The final state of the group's messages. */
  readonly messages: ReadonlyMap<MessageKey, MessageState>;
  /** The kinds of the group's notices (changes that are no messages). */
  readonly notices: readonly string[];
}

export const epochSuffix = (epoch: number): string => (epoch === 0 ? '' : `.${epoch}`);

/** Negative when `a` is older than `b`. */
export function compareEpochNumbers(a: EpochNumber, b: EpochNumber): number {
  return a.epoch === b.epoch ? a.number - b.number : a.epoch - b.epoch;
}

/** The seq of a message, with its log epoch. */
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
