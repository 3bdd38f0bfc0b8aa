/**
 * Identifiers as branded numbers, so that a sequence number is never taken for a hook's id. All are positive; the
 * database's bigint columns stay below 2^53, which `storage/db/connection.ts` checks when it reads one.
 */
declare const brand: unique symbol;
type Branded<Name extends string> = number & { readonly [brand]: Name };

export type ConversationId = Branded<'ConversationId'>;
export type AccountId = Branded<'AccountId'>;
export type HookId = Branded<'HookId'>;
/** Position of a message in its conversation: 1, 2, 3 ... without gaps. Reverse webhooks follow it. */
export type Seq = Branded<'Seq'>;
/** Number of a change in its conversation (message, edit, deletion, notice), without gaps. Clients follow it. */
export type Rev = Branded<'Rev'>;
/**
 * The history of the log that a change belongs to: 0 until changes were lost for the first time, and a greater number
 * after each loss. A seq or rev of a later epoch is newer than each of an earlier one.
 */
export type LogEpoch = Branded<'LogEpoch'>;
/** A session of a person, or a token of a bot. */
export type SessionOrTokenId = Branded<'SessionOrTokenId'>;

export type DeviceId = Branded<'DeviceId'>;

/** A message's public id: `<group>:<seq>`, and `<group>:<seq>.<epoch>` where it was written in a later epoch than 0. */
export function messageId(conversationId: ConversationId, seq: Seq, logEpoch: LogEpoch): string {
  return `${conversationId}:${seq}${epochSuffix(logEpoch)}`;
}

/** The end of a public id that shows the log epoch; empty in epoch 0. */
export function epochSuffix(logEpoch: LogEpoch): string {
  return logEpoch === 0 ? '' : `.${logEpoch}`;
}

/** The parts of a message's public id. */
export interface MessagePosition {
  readonly conversationId: ConversationId;
  readonly seq: Seq;
  readonly logEpoch: LogEpoch;
}

export const MESSAGE_ID_PATTERN = /^([1-9]\d{0,14}):([1-9]\d{0,14})(?:\.([1-9]\d{0,8}))?$/;

/** The position that a message's public id names; null for any other text. */
export function parseMessageId(id: string): MessagePosition | null {
  const match = MESSAGE_ID_PATTERN.exec(id);
  if (match === null) return null;
  const [conversationId, seq, logEpoch] = [match[1], match[2], match[3] ?? 0].map(Number);
  return { conversationId: conversationId as ConversationId, seq: seq as Seq, logEpoch: logEpoch as LogEpoch };
}
