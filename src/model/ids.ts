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
/** A session of a person, or a token of a bot. */
export type SessionOrTokenId = Branded<'SessionOrTokenId'>;

export type DeviceId = Branded<'DeviceId'>;

/** A message's public id, `<group>:<seq>`. */
export function messageId(conversationId: ConversationId, seq: Seq): string {
  return `${conversationId}:${seq}`;
}
