import {
  anything,
  arrayOf,
  boolean,
  constant,
  integer,
  naturalNumber,
  nullable,
  number,
  objectWithAtLeast,
  optional,
  positiveInteger,
  recordOf,
  string,
  type Decoded,
} from './decode.ts';

/**
 * The fields of the server's messages that this client relies on; the decoders leave all other fields unchanged. They
 * are not the server's own schemas, because a client also talks to servers of other versions.
 */

const id = positiveInteger;
const rev = naturalNumber;

const decodeActor = objectWithAtLeast({ id: integer, name: string, nick: nullable(string), kind: string });

export const decodeAttachment = objectWithAtLeast({
  id: string,
  name: string,
  type: string,
  size: number,
  /** The size of a picture as it is shown, in pixels; absent if the first bytes of the file do not contain it. */
  width: optional(positiveInteger),
  height: optional(positiveInteger),
});

const decodeCard = objectWithAtLeast({
  title: optional(string),
  url: optional(string),
  mood: optional(string),
  color: optional(string),
  author: optional(string),
  text: optional(string),
  fields: optional(arrayOf(objectWithAtLeast({ name: optional(string), value: optional(string) }))),
  links: optional(arrayOf(objectWithAtLeast({ label: optional(string), url: string }))),
  footer: optional(string),
  time: optional(string),
});

export const decodeMessage = objectWithAtLeast({
  id: string,
  seq: integer,
  rev: integer,
  sender: decodeActor,
  text: string,
  label: optional(string),
  sent_at: string,
  edited_at: optional(string),
  deleted: optional(constant(true)),
  /** Absent if the server is too old for attachments. */
  attachments: optional(arrayOf(decodeAttachment)),
  cards: optional(arrayOf(decodeCard)),
  mentions: optional(arrayOf(string)),
  /** The `client_id` of the request that sent the message; only the sender's sessions get it. */
  client_id: optional(string),
});

export const decodeNotice = objectWithAtLeast({
  kind: string,
  actor: nullable(decodeActor),
  details: recordOf(anything),
  at: string,
  /** The rev of the notice's change; only notices in a history have it. */
  rev: optional(rev),
  /** The seq of the message that precedes the notice. */
  after_seq: optional(integer),
});

/** A change of a conversation: a message in its current state, or a notice. */
const changeFields = { rev, message: optional(decodeMessage), notice: optional(decodeNotice) };
const decodeChange = objectWithAtLeast(changeFields);

/** A message as a list of conversations shows it. */
const decodeLastMessage = objectWithAtLeast({
  seq: integer,
  sender: decodeActor,
  label: optional(string),
  /** The beginning of the text. */
  text: string,
  deleted: optional(constant(true)),
  /** The number of the message's files. */
  attachments: integer,
});

export const decodeConversation = objectWithAtLeast({
  id,
  kind: string,
  title: string,
  peer: nullable(decodeActor),
  role: string,
  members: integer,
  archived: boolean,
  last_seq: integer,
  last_at: nullable(string),
  created_at: optional(string),
  unread: integer,
  /** Older servers send neither `unread_mentions` nor `first_seq`. */
  unread_mentions: optional(integer),
  first_seq: optional(integer),
  read_seq: optional(integer),
  about: optional(nullable(string)),
  public: optional(boolean),
  notifications: optional(objectWithAtLeast({ level: string, muted_until: nullable(string) })),
  last_message: optional(nullable(decodeLastMessage)),
});

export const decodeAccount = objectWithAtLeast({ id, nick: string, name: string });

export const decodeAuthenticated = objectWithAtLeast({ account: decodeAccount, session: integer });
/** The log epoch. Absent means 0: the server never lost a change. */
const epoch = optional(naturalNumber);
export const decodeSubscribeResult = objectWithAtLeast({
  conversations: arrayOf(objectWithAtLeast({ id, rev, epoch_rev: optional(rev) })),
  complete: boolean,
  epoch,
  previous_epoch: epoch,
});
export const decodeChangePage = objectWithAtLeast({ changes: arrayOf(decodeChange), rev, more: boolean, epoch });

/** The parameters of the server's notifications, such as `conversation.change`. */
export const decodeConversationChange = objectWithAtLeast({ ...changeFields, conversation: id });
export const decodeConversationJoined = objectWithAtLeast({ conversation: id, rev });
export const decodeConversationLeft = objectWithAtLeast({ conversation: id });
export const decodeSessionEnded = objectWithAtLeast({ reason: string, code: optional(integer) });

export type Actor = Decoded<typeof decodeActor>;
export type Attachment = Decoded<typeof decodeAttachment>;
export type Card = Decoded<typeof decodeCard>;
export type Message = Decoded<typeof decodeMessage>;
export type Notice = Decoded<typeof decodeNotice>;
export type Change = Decoded<typeof decodeChange>;
export type LastMessage = Decoded<typeof decodeLastMessage>;
export type Conversation = Decoded<typeof decodeConversation>;
export type Account = Decoded<typeof decodeAccount>;
export type ChangePage = Decoded<typeof decodeChangePage>;
export type SubscribeResult = Decoded<typeof decodeSubscribeResult>;
