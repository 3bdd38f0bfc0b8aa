import {
  anything,
  arrayOf,
  boolean,
  constant,
  integer,
  naturalNumber,
  nullable,
  number,
  object,
  optional,
  positiveInteger,
  recordOf,
  string,
  type Decoded,
} from './decode.ts';

/**
 * What this client relies on in what the server sends; the rest is kept as it came. They are not the server's own
 * schemas: a client outlives the server that it was made with.
 */

const id = positiveInteger;
const rev = naturalNumber;

const decodeActor = object({ id: integer, name: string, nick: nullable(string), kind: string });

export const decodeAttachment = object({ id: string, name: string, type: string, size: number });

export const decodeMessage = object({
  id: string,
  seq: integer,
  rev: integer,
  sender: decodeActor,
  text: string,
  label: optional(string),
  sent_at: string,
  edited_at: optional(string),
  deleted: optional(constant(true)),
  /** Servers before files had none. */
  attachments: optional(arrayOf(decodeAttachment)),
});

const decodeNotice = object({ kind: string, actor: nullable(decodeActor), details: recordOf(anything), at: string });

/** A change of a conversation: a message as it is now, or a notice. */
const changeFields = { rev, message: optional(decodeMessage), notice: optional(decodeNotice) };
const decodeChange = object(changeFields);

export const decodeConversation = object({
  id,
  kind: string,
  title: string,
  peer: nullable(decodeActor),
  role: string,
  members: integer,
  archived: boolean,
  last_seq: integer,
  last_at: nullable(string),
  unread: integer,
});

export const decodeAccount = object({ id, nick: string, name: string });

export const decodeAuthenticated = object({ account: decodeAccount, session: integer });
/** Not there: 0, the server never lost a change. */
const epoch = optional(naturalNumber);
export const decodeSubscribeResult = object({
  conversations: arrayOf(object({ id, rev, epoch_rev: optional(rev) })),
  complete: boolean,
  epoch,
  previous_epoch: epoch,
});
export const decodeChangePage = object({ changes: arrayOf(decodeChange), rev, more: boolean, epoch });

/** Notifications, by method. */
export const decodeConversationChange = object({ ...changeFields, conversation: id });
export const decodeConversationJoined = object({ conversation: id, rev });
export const decodeConversationLeft = object({ conversation: id });
export const decodeSessionEnded = object({ reason: string, code: optional(integer) });

export type Actor = Decoded<typeof decodeActor>;
export type Attachment = Decoded<typeof decodeAttachment>;
export type Message = Decoded<typeof decodeMessage>;
export type Notice = Decoded<typeof decodeNotice>;
export type Change = Decoded<typeof decodeChange>;
export type Conversation = Decoded<typeof decodeConversation>;
export type Account = Decoded<typeof decodeAccount>;
export type ChangePage = Decoded<typeof decodeChangePage>;
export type SubscribeResult = Decoded<typeof decodeSubscribeResult>;
