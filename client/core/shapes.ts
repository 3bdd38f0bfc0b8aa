import * as z from 'zod';

/**
 * What this client relies on in what the server sends; the rest is kept as it came. They are not the server's own
 * schemas: a client outlives the server that it was made with.
 */

const id = z.int().positive();
const rev = z.int().nonnegative();

const actorSchema = z.looseObject({
  id: z.int(),
  name: z.string(),
  nick: z.string().nullable(),
  kind: z.string(),
});

export const attachmentSchema = z.looseObject({ id: z.string(), name: z.string(), type: z.string(), size: z.number() });

export const messageSchema = z.looseObject({
  id: z.string(),
  seq: z.int(),
  rev: z.int(),
  sender: actorSchema,
  text: z.string(),
  label: z.string().optional(),
  sent_at: z.string(),
  edited_at: z.string().optional(),
  deleted: z.literal(true).optional(),
  /** Servers before files had none. */
  attachments: z.array(attachmentSchema).optional(),
});

const noticeSchema = z.looseObject({
  kind: z.string(),
  actor: actorSchema.nullable(),
  details: z.record(z.string(), z.unknown()),
  at: z.string(),
});

/** A change of a conversation: a message as it is now, or a notice. */
const changeSchema = z.looseObject({
  rev,
  message: messageSchema.optional(),
  notice: noticeSchema.optional(),
});

export const conversationSchema = z.looseObject({
  id,
  kind: z.string(),
  title: z.string(),
  peer: actorSchema.nullable(),
  role: z.string(),
  members: z.int(),
  archived: z.boolean(),
  last_seq: z.int(),
  last_at: z.string().nullable(),
  unread: z.int(),
});

export const accountSchema = z.looseObject({ id, nick: z.string(), name: z.string() });

export const authenticatedSchema = z.looseObject({ account: accountSchema, session: z.int() });
export const followedSchema = z.looseObject({
  conversations: z.array(z.looseObject({ id, rev })),
  complete: z.boolean(),
});
export const changePageSchema = z.looseObject({ changes: z.array(changeSchema), rev, more: z.boolean() });

/** Notifications, by method. */
export const changedSchema = changeSchema.extend({ conversation: id });
export const joinedSchema = z.looseObject({ conversation: id, rev });
export const leftSchema = z.looseObject({ conversation: id });
export const endedSchema = z.looseObject({ reason: z.string(), code: z.int().optional() });

export type Actor = z.infer<typeof actorSchema>;
export type Attachment = z.infer<typeof attachmentSchema>;
export type Message = z.infer<typeof messageSchema>;
export type Notice = z.infer<typeof noticeSchema>;
export type Change = z.infer<typeof changeSchema>;
export type Conversation = z.infer<typeof conversationSchema>;
export type Account = z.infer<typeof accountSchema>;
export type Followed = z.infer<typeof followedSchema>;
