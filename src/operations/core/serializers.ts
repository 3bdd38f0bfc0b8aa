import * as z from 'zod';
import { messageId, type AccountId, type ConversationId, type Seq } from '../../model/ids.ts';
import type { Attachment } from '../../model/attachment.ts';
import { MOODS, cardWithOrderedKeys } from '../../model/message-card.ts';
import { mentionsOf } from '../../model/mentions.ts';
import type { Actor, Change, StoredMessage, StoredNotice } from '../../storage/messages/changes.ts';
import type { MessagePreview } from '../../storage/groups/conversations.ts';
import type { EpochBoundary } from '../../storage/messages/log-epoch.ts';
import { aboutField, conversationField, createdAtField, groupRoleSchema, membersField } from './schemas.ts';

/**
 * The schemas in this file define the JSON of entities wherever it appears: results of operations, live frames,
 * documents.
 */

export const actorSchema = z.object({
  id: z.int().describe('The number of the account, or of the integration.'),
  name: z.string().describe('The name, for people to read.'),
  nick: z.string().nullable().describe("The nick; null for a group's integration."),
  kind: z.enum(['user', 'bot', 'webhook']).describe("A person, a bot, or a group's integration."),
});

const attachmentSchema = z.object({
  id: z.string().describe("The file's id: `/v1/files/<id>` has it, for who may read the message."),
  name: z.string().describe("The file's name."),
  type: z.string().describe('Media type of its content; `application/octet-stream` where that shows nothing.'),
  size: z.int().describe('Its size in bytes.'),
  width: z
    .int()
    .optional()
    .describe('Of a PNG, JPEG, GIF or WebP that says it: pixels, as it is shown. Both are there or none.'),
  height: z.int().optional().describe('As `width`.'),
});

const cardFieldSchema = z.object({
  name: z.string().optional().describe('Name of the field.'),
  value: z.string().optional().describe('Value of the field.'),
  short: z.literal(true).optional().describe('It may stand beside its neighbours that are short as well.'),
});

const cardLinkSchema = z.object({
  label: z.string().optional().describe('Text to show in its place.'),
  url: z.string().describe('Begins with `http://`, `https://` or `mailto:`.'),
});

/**
 * A part of a webhook's message, for clients that draw it with a title, fields and links. Keys that a card has no value
 * for are absent. The text of the message says the same, so such clients show the cards in place of the text. If a
 * card's text ends with `… (cut)`, the whole text is in the message's text.
 */
export const cardSchema = z.object({
  title: z.string().optional().describe('Its heading.'),
  url: z
    .string()
    .optional()
    .describe('Where the title leads. Begins with `http://`, `https://` or `mailto:`, as each address of a card.'),
  mood: z.enum(MOODS).optional().describe('How it is meant.'),
  color: z.string().optional().describe("In place of a mood, the sender's own colour, `#rrggbb`."),
  author: z.string().optional().describe('Whom the sender names as its author.'),
  text: z.string().optional().describe('Text of the card.'),
  fields: z.array(cardFieldSchema).optional().describe('At most 25. Each has a name, a value, or both.'),
  links: z.array(cardLinkSchema).optional().describe('At most 10.'),
  image: z
    .string()
    .optional()
    .describe('Address of a picture. A client that loads it tells its server who reads the message, and when.'),
  footer: z.string().optional().describe('Its last line.'),
  time: z.string().optional().describe('The time that the sender gave it: ISO 8601, in UTC.'),
});

const messageSeq = z.int().describe("The message's place in its conversation.");
const senderSchema = actorSchema.describe('The account that posted it.');

export const messageSchema = z.object({
  id: z.string().describe('`<conversation>:<seq>`.'),
  seq: messageSeq,
  rev: z.int().describe('The number of the change that made it what it is; an edit or a deletion gives it a new one.'),
  sender: senderSchema,
  text: z.string().describe('Text of the message.'),
  label: z
    .string()
    .optional()
    .describe('A name that a webhook gave itself; it is shown beside the sender, never in its place.'),
  icon_url: z.string().optional().describe('Address of a picture that a webhook gave itself.'),
  sent_at: z.string().describe('Time at which it was stored.'),
  edited_at: z.string().optional().describe('Time of the last edit.'),
  deleted: z.literal(true).optional().describe('Deleted messages stay as a place without text.'),
  mentions: z.array(z.string()).describe('Nicks that the text mentions, in lower case.'),
  attachments: z.array(attachmentSchema).describe('Its files.'),
  cards: z
    .array(cardSchema)
    .optional()
    .describe('The contents of the text in parts, at most 10; not there: the text alone.'),
  client_id: z
    .string()
    .optional()
    .describe("The value that its sender gave to `messages.send`; only the sender's own sessions and tokens get it."),
});

export const noticeSchema = z.object({
  kind: z.string().describe('Kind of the event: `joined`, `left`, `renamed` …'),
  actor: actorSchema.nullable().describe('The account that did it; null: none did.'),
  details: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
    .describe('More of it, by kind.'),
  at: z.string().describe('Time of the event.'),
  after_seq: z
    .int()
    .describe(
      'It comes behind the message with this seq, the newest one when it was written; 0: before the first one.',
    ),
});

/** A change of a conversation. It has either `message` or `notice`. */
export const changeSchema = z.object({
  rev: z.int().describe('The number of the change in its conversation.'),
  message: messageSchema.optional().describe('The message that is new or was changed, as it is now.'),
  notice: noticeSchema.optional().describe('The notice that was written.'),
});

/** The newest message of a conversation, as a list shows it. */
const messagePreviewSchema = z.object({
  seq: messageSeq,
  sender: senderSchema,
  label: z.string().optional().describe('A name that a webhook gave itself.'),
  text: z.string().describe('Its first 200 characters; none when it is deleted.'),
  deleted: z.literal(true).optional().describe('It was deleted.'),
  attachments: z.int().describe('How many files it carries.'),
});

/** A conversation as one of its members sees it. */
export const conversationSchema = z.object({
  id: conversationField,
  kind: z.enum(['group', 'private']).describe('A group, or a private conversation of two.'),
  title: z.string().describe("The group's title; of a private conversation, the other one's name."),
  about: aboutField,
  public: z.boolean().describe('Anybody of the installation may find and join it.'),
  archived: z.boolean().describe('Nobody posts into an archived group.'),
  role: groupRoleSchema.describe("The caller's own."),
  members: membersField,
  peer: actorSchema.nullable().describe('The other one of a private conversation.'),
  created_at: createdAtField,
  first_seq: z.int().describe('Messages before this one were removed by a retention rule; 1: none were.'),
  last_seq: z.int().describe('The newest message; 0: there was none.'),
  last_rev: z.int().describe('The newest change; 0: there was none.'),
  last_at: z.string().nullable().describe('Time of the newest message; null: there is none.'),
  last_message: messagePreviewSchema
    .nullable()
    .describe('The message `last_seq`; null where there is none, or a retention rule removed it.'),
  read_seq: z.int().describe('The caller has read up to here.'),
  unread: z.int().describe('Messages after `read_seq`.'),
  unread_mentions: z.int().describe('Unread messages that mention the caller; 1000: or more.'),
  notifications: z
    .object({
      level: z
        .enum(['all', 'mentions', 'nothing'])
        .describe("New messages for which the server notifies the caller's devices."),
      muted_until: z
        .string()
        .nullable()
        .describe('The server sends no notification before this time; null: the conversation is not muted.'),
    })
    .describe("Notifications that the caller's devices get."),
});

export type SerializedMessage = z.infer<typeof messageSchema>;
export type SerializedNotice = z.infer<typeof noticeSchema>;
export type SerializedChange = z.infer<typeof changeSchema>;
export type SerializedConversation = z.infer<typeof conversationSchema>;

export function serializeActor({ id, name, nick, kind }: Actor): z.infer<typeof actorSchema> {
  return { id, name, nick, kind };
}

/** The message as `viewerId` sees it; null: as everybody but its sender sees it. */
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
    ...(cards.length === 0 || isDeleted ? {} : { cards: cards.map(cardWithOrderedKeys) }),
    // A deleted message keeps its client id, which reveals nothing of the content. The sender's client may get the
    // deletion before the answer to its post.
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

/** The attachment with its keys in the order of the documents. The database has another order. */
function serializeAttachment({ id, name, type, size, width, height }: Attachment): z.infer<typeof attachmentSchema> {
  return { id, name, type, size, ...(width === undefined ? {} : { width, height }) };
}

/** The first seq of a conversation. Left out if it is 1, as in nearly all conversations. */
export function serializeFirstSeq(firstSeq: Seq): { first_seq?: number } {
  return firstSeq > 1 ? { first_seq: firstSeq } : {};
}

export const firstKeptSeqSchema = z
  .int()
  .optional()
  .describe('Messages before this one were removed by a retention rule: drop them. Not there where none were.');

/** The log epoch of an answer. Left out if it is 0: no change was ever lost. */
export const epochSchema = {
  epoch: z.int().optional().describe('The epoch of the log; not there: 0, no change was ever lost.'),
  previous_epoch: z.int().optional().describe('The epoch before it. A client that knows neither drops everything.'),
};

export function serializeEpoch({
  currentEpoch,
  previousEpoch,
}: Pick<EpochBoundary, 'currentEpoch' | 'previousEpoch'>): { epoch?: number; previous_epoch?: number } {
  return currentEpoch === 0 ? {} : { epoch: currentEpoch, previous_epoch: previousEpoch };
}

/** The log epoch of an answer about one conversation, and the rev at which it begins there. */
export const epochBoundarySchema = {
  ...epochSchema,
  epoch_rev: z
    .int()
    .optional()
    .describe('A client that knows `previous_epoch` drops changes with a greater rev and continues after this one.'),
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

/** The change as `viewerId` sees it; null: as everybody but the sender of its message sees it. */
export function serializeChange(
  conversationId: ConversationId,
  change: Change,
  viewerId: AccountId | null,
): SerializedChange {
  const { rev } = change;
  if (change.type === 'message') return { rev, message: serializeMessage(conversationId, change.message, viewerId) };
  return { rev, notice: serializeNotice(change.notice) };
}
