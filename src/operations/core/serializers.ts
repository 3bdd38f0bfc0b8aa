import * as z from 'zod';
import { messageId, type AccountId, type ConversationId, type Seq } from '../../model/ids.ts';
import type { Attachment } from '../../model/attachment.ts';
import { MOODS, orderedCard } from '../../model/message-card.ts';
import { mentionsOf } from '../../model/mentions.ts';
import type { Actor, Change, StoredMessage, StoredNotice } from '../../storage/messages/changes.ts';
import type { MessagePreview } from '../../storage/groups/conversations.ts';
import type { EpochBoundary } from '../../storage/messages/log-epoch.ts';
import { groupRoleSchema } from './schemas.ts';

/** How things look on the wire, wherever they appear: results of operations, live frames, documents. */

export const actorSchema = z.object({
  id: z.int(),
  name: z.string(),
  /** Null for a group's integration. */
  nick: z.string().nullable(),
  kind: z.enum(['user', 'bot', 'webhook']),
});

/** A file of a message: `/v1/files/<id>` has it, for who may read the message. */
const attachmentSchema = z.object({
  id: z.string(),
  name: z.string(),
  /** Of its content; `application/octet-stream` where that shows nothing. */
  type: z.string(),
  /** Bytes. */
  size: z.int(),
  /** Of a PNG, JPEG, GIF or WebP that says it: pixels, as it is shown. Both are there or none. */
  width: z.int().optional(),
  height: z.int().optional(),
});

const cardFieldSchema = z.object({
  name: z.string().optional(),
  value: z.string().optional(),
  /** It may stand beside its neighbours that are short as well. */
  short: z.literal(true).optional(),
});

const cardLinkSchema = z.object({ label: z.string().optional(), url: z.string() });

/**
 * A part of what a webhook posted, for clients that draw it: with a title, fields, links. Each key is there only where there
 * is something of it. A client that draws cards shows them in place of the text, which says the same; where a card's text
 * ends with `… (cut)`, the message's text goes on.
 */
export const cardSchema = z.object({
  title: z.string().optional(),
  /** Begins with `http://`, `https://` or `mailto:`, as each address of a card. */
  url: z.string().optional(),
  /** How it is meant. */
  mood: z.enum(MOODS).optional(),
  /** In place of a mood, the sender's own colour, `#rrggbb`. */
  color: z.string().optional(),
  author: z.string().optional(),
  text: z.string().optional(),
  /** At most 25. Each has a name, a value, or both. */
  fields: z.array(cardFieldSchema).optional(),
  /** At most 10. */
  links: z.array(cardLinkSchema).optional(),
  /** Address of a picture. A client that loads it tells its server who reads the message, and when. */
  image: z.string().optional(),
  footer: z.string().optional(),
  /** ISO 8601, in UTC. */
  time: z.string().optional(),
});

export const messageSchema = z.object({
  /** `<conversation>:<seq>`. */
  id: z.string(),
  seq: z.int(),
  /** The number of the change that made it what it is; an edit or a deletion gives it a new one. */
  rev: z.int(),
  sender: actorSchema,
  text: z.string(),
  /** A name that a webhook gave itself; it is shown beside the sender, never in its place. */
  label: z.string().optional(),
  icon_url: z.string().optional(),
  sent_at: z.string(),
  edited_at: z.string().optional(),
  /** Deleted messages stay as a place without text. */
  deleted: z.literal(true).optional(),
  /** Nicks that the text mentions, in lower case. */
  mentions: z.array(z.string()),
  attachments: z.array(attachmentSchema),
  /** What the text says, in parts, at most 10; not there: the text alone. */
  cards: z.array(cardSchema).optional(),
  /** What its sender gave `messages.send`; only the sender's own sessions and tokens are told. */
  client_id: z.string().optional(),
});

export const noticeSchema = z.object({
  /** What happened: `joined`, `left`, `renamed` … */
  kind: z.string(),
  actor: actorSchema.nullable(),
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  at: z.string(),
  /** It comes behind the message with this seq, the newest one when it was written; 0: before the first one. */
  after_seq: z.int(),
});

/** A change of a conversation; exactly one of `message` and `notice` is there. */
export const changeSchema = z.object({
  rev: z.int(),
  message: messageSchema.optional(),
  notice: noticeSchema.optional(),
});

/** The newest message of a conversation, as a list shows it. */
const messagePreviewSchema = z.object({
  seq: z.int(),
  sender: actorSchema,
  /** A name that a webhook gave itself. */
  label: z.string().optional(),
  /** Its first 200 characters; none when it is deleted. */
  text: z.string(),
  deleted: z.literal(true).optional(),
  /** How many files it carries. */
  attachments: z.int(),
});

/** A conversation as one of its members sees it. */
export const conversationSchema = z.object({
  id: z.int(),
  kind: z.enum(['group', 'private']),
  /** Of a private conversation, the other one's name. */
  title: z.string(),
  about: z.string().nullable(),
  /** Anybody of the installation may find and join it. */
  public: z.boolean(),
  archived: z.boolean(),
  /** The caller's own. */
  role: groupRoleSchema,
  members: z.int(),
  /** The other one of a private conversation. */
  peer: actorSchema.nullable(),
  created_at: z.string(),
  /** Messages before this one were removed by a retention rule; 1: none were. */
  first_seq: z.int(),
  last_seq: z.int(),
  last_rev: z.int(),
  last_at: z.string().nullable(),
  /** The message `last_seq`; null where there is none, or a retention rule removed it. */
  last_message: messagePreviewSchema.nullable(),
  /** The caller has read up to here. */
  read_seq: z.int(),
  unread: z.int(),
  /** Unread messages that mention the caller; 1000: or more. */
  unread_mentions: z.int(),
  /** What the caller's devices are told of. */
  notifications: z.object({ level: z.enum(['all', 'mentions', 'nothing']), muted_until: z.string().nullable() }),
});

export type SerializedMessage = z.infer<typeof messageSchema>;
export type SerializedNotice = z.infer<typeof noticeSchema>;
export type SerializedChange = z.infer<typeof changeSchema>;
export type SerializedConversation = z.infer<typeof conversationSchema>;

export function serializeActor({ id, name, nick, kind }: Actor): z.infer<typeof actorSchema> {
  return { id, name, nick, kind };
}

/** The message as `viewerId` sees it; null: as it is for everybody but its sender. */
export function serializeMessage(
  conversationId: ConversationId,
  message: StoredMessage,
  viewerId: AccountId | null,
): SerializedMessage {
  const { seq, rev, logEpoch, sender, text, label, iconUrl, sentAt, editedAt, deletedAt, attachments, cards } = message;
  const { clientId } = message;
  const isDeleted = deletedAt !== null;
  return {
    id: messageId(conversationId, seq, logEpoch),
    seq,
    rev,
    sender: serializeActor(sender),
    text: isDeleted ? '' : text,
    ...(label === null || isDeleted ? {} : { label }),
    ...(iconUrl === null || isDeleted ? {} : { icon_url: iconUrl }),
    sent_at: sentAt.toISOString(),
    ...(editedAt === null ? {} : { edited_at: editedAt.toISOString() }),
    ...(isDeleted ? { deleted: true as const } : {}),
    mentions: isDeleted ? [] : mentionsOf(text),
    attachments: isDeleted ? [] : attachments.map(serializeAttachment),
    ...(cards.length === 0 || isDeleted ? {} : { cards: cards.map(orderedCard) }),
    // It says nothing of the content, and a deletion may be the first that the sender's client hears of the message.
    ...(clientId === null || sender.id !== viewerId ? {} : { client_id: clientId }),
  };
}

export function serializeMessagePreview(preview: MessagePreview): z.infer<typeof messagePreviewSchema> {
  const { seq, sender, label, text, deleted, attachments } = preview;
  return {
    seq,
    sender: serializeActor(sender),
    ...(label === null ? {} : { label }),
    text,
    ...(deleted ? { deleted: true as const } : {}),
    attachments,
  };
}

/** In the order in which documents name its parts; the database has one of its own. */
function serializeAttachment({ id, name, type, size, width, height }: Attachment): z.infer<typeof attachmentSchema> {
  return { id, name, type, size, ...(width === undefined ? {} : { width, height }) };
}

/** Where a conversation begins; nothing of one that begins with its first message, as nearly all do. */
export function serializeFirstSeq(firstSeq: Seq): { first_seq?: number } {
  return firstSeq > 1 ? { first_seq: firstSeq } : {};
}

/** In which epoch of the log an answer was given; nothing of it where no change was ever lost. */
export const epochSchema = {
  /** The epoch of the log; not there: 0, no change was ever lost. */
  epoch: z.int().optional(),
  /** The epoch before it: who knows neither drops everything. */
  previous_epoch: z.int().optional(),
};

export function serializeEpoch({
  currentEpoch,
  previousEpoch,
}: Pick<EpochBoundary, 'currentEpoch' | 'previousEpoch'>): { epoch?: number; previous_epoch?: number } {
  return currentEpoch === 0 ? {} : { epoch: currentEpoch, previous_epoch: previousEpoch };
}

/** The same of one conversation. */
export const epochBoundarySchema = {
  ...epochSchema,
  /** Who knows `previous_epoch` drops what has a greater rev, and goes on behind this one. */
  epoch_rev: z.int().optional(),
};

export function serializeEpochBoundary(boundary: EpochBoundary): {
  epoch?: number;
  previous_epoch?: number;
  epoch_rev?: number;
} {
  return boundary.currentEpoch === 0 ? {} : { ...serializeEpoch(boundary), epoch_rev: boundary.epochRev };
}

export function serializeNotice({ kind, actor, details, at, afterSeq }: StoredNotice): SerializedNotice {
  return {
    kind,
    actor: actor === null ? null : serializeActor(actor),
    details: { ...details },
    at: at.toISOString(),
    after_seq: afterSeq,
  };
}

/** The change as `viewerId` sees it; null: as it is for everybody but the sender of its message. */
export function serializeChange(
  conversationId: ConversationId,
  change: Change,
  viewerId: AccountId | null,
): SerializedChange {
  const { rev } = change;
  if (change.type === 'message') return { rev, message: serializeMessage(conversationId, change.message, viewerId) };
  return { rev, notice: serializeNotice(change.notice) };
}
