import { createHash } from 'node:crypto';
import * as z from 'zod';
import { KlatchError, SAFE_REPEAT_HINT } from '../../errors.ts';
import type { AccountId, ConversationId, Seq } from '../../model/ids.ts';
import { CommitUnknownError } from '../../storage/db/database-error.ts';
import { findGroupRole, findConversationAndRole } from '../../storage/groups/members.ts';
import type { StoredMessage } from '../../storage/messages/changes.ts';
import { isBlockedByPeer, readMessage } from '../../storage/messages/messages.ts';
import type { Post, PostResult } from '../../storage/messages/write-posts.ts';
import { resolveActiveAccount } from '../core/access.ts';
import { checkAttachments, assertAttachable } from './attachments.ts';
import type { Caller } from '../core/caller.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { MESSAGE_OPERATION_LIMITS } from '../core/input-limits.ts';
import { checkMessageText } from '../core/message-text.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { conversationField, conversationReference, fileIdSchema, nickSchema } from '../core/schemas.ts';
import { messageSchema, serializeMessage } from '../core/serializers.ts';
import type { Services } from '../core/services.ts';
import { notAMember } from '../core/conversation-access.ts';

const clientMessageIdSchema = z.string().regex(/^[\x21-\x7e]{1,255}$/, 'must have 1 to 255 visible ASCII characters');
/** The greatest value that `limits.attachments-per-message` can have. */
const MAX_CONFIGURABLE_FILES_PER_MESSAGE = 100;
/**
 * At most this many attempts of a post. The message log may refuse the post for a reason that is gone when this code
 * reads it: the member left and joined again.
 */
const MAX_POST_ATTEMPTS = 3;

export const sendMessage = defineTargetedOperation({
  name: 'messages.send',
  summary: 'Post a message into a conversation. The answer comes once it is stored, and has the form of the history.',
  input: z.strictObject({
    conversation: conversationReference,
    text: z.string().describe('May be empty where there are files.'),
    files: z
      .array(fileIdSchema)
      .max(MAX_CONFIGURABLE_FILES_PER_MESSAGE)
      .optional()
      .describe(
        "Files of the sender's own that are stored and in no message yet; the message carries them in this order.",
      ),
    client_id: clientMessageIdSchema
      .optional()
      .describe(
        'A repeat with the same one, the same text and the same files posts nothing and answers the first message, for 24 hours.',
      ),
    as: nickSchema.optional().describe("The command line's alone: the nick of the member who posts."),
  }),
  output: messageSchema.extend({
    conversation: conversationField,
    repeated: z
      .boolean()
      .describe('The message was posted by an earlier call with this `client_id`; it is shown as it is now.'),
  }),
  on: 'conversation',
  who: 'member',
  scope: 'messages:write',
  limits: MESSAGE_OPERATION_LIMITS,
  errors: [
    'group_archived',
    'blocked',
    'file_not_attachable',
    'idempotency_key_reused',
    'not_member',
    'too_large',
    'overloaded',
    'outcome_unknown',
  ],
  run: async (services, { text: given, files = [], client_id: clientId, as }, caller, { conversationId }) => {
    const { limits } = services.config;
    const attachments = checkAttachments(files, limits.attachmentsPerMessage);
    const text = checkMessageText(given, limits.textCodePoints, { hasAttachments: attachments.length > 0 });
    const senderId = await resolveCallerOrNamedMember(services, caller, { conversationId, as });
    const unlabelled = { admission: null, label: null, iconUrl: null, cardsJson: null, hops: 0 };
    // The idempotency key has a namespace for each sender, so it differs from the keys of other members and of
    // webhooks.
    const idempotencyFields =
      clientId === undefined
        ? { key: null, bodyHash: null }
        : { key: `account:${senderId}:${clientId}`, bodyHash: bodyHash(text, attachments), clientId };
    const post = { ...unlabelled, ...idempotencyFields, conversationId, senderId, text, attachments };
    const posted = await appendAsMember(services, post);
    if (posted.outcome === 'repeat' && !posted.sameBody) {
      const sentence = 'This client_id was used for another text or other files; use a new one for a new message';
      throw new KlatchError('idempotency_key_reused', { sentence });
    }
    const repeated = posted.outcome === 'repeat';
    const message = await readPosted(services, { conversationId, seq: posted.seq, repeated });
    return { ...serializeMessage(conversationId, message, senderId), conversation: conversationId, repeated };
  },
});

/**
 * The posted message as it is now. Throws `outcome_unknown` if a new message cannot be read: any other error would say
 * that nothing was posted, and the sender would post it again.
 */
async function readPosted(
  { database }: Services,
  place: { conversationId: ConversationId; seq: Seq; repeated: boolean },
): Promise<StoredMessage> {
  const reading = database.general.run((sql) => readMessage(sql, place));
  const message = await (place.repeated ? translateLostRead(reading) : reading.catch(throwPostedButUnread));
  if (message !== null) return message;
  throw new KlatchError('not_found', { sentence: 'The message was posted, and a retention rule has removed it since' });
}

function throwPostedButUnread(cause: unknown): never {
  const sentence =
    'The message was posted, and the database failed before it was answered. Repeating it is safe with a client_id';
  throw new KlatchError('outcome_unknown', { sentence, cause });
}

/** Different messages have different hashes, since neither texts nor file ids contain NUL, which separates them. */
function bodyHash(text: string, attachments: readonly string[]): string {
  return createHash('sha256')
    .update([text, ...attachments].join('\u0000'))
    .digest('hex');
}

/** The account of the sender: the caller; for the command line, the member whose nick is given. */
async function resolveCallerOrNamedMember(
  { database }: Services,
  caller: Caller,
  { conversationId, as }: { conversationId: ConversationId; as: string | undefined },
): Promise<AccountId> {
  if (caller.kind === 'account') {
    if (as === undefined) return caller.accountId;
    throw new KlatchError('forbidden', { sentence: 'as: only the command line posts for others; leave it out' });
  }
  if (as === undefined)
    throw new KlatchError('invalid_input', { sentence: 'as: give the nick of the member who posts' });
  return translateLostRead(
    database.general.run(async (sql) => {
      const { id: accountId } = await resolveActiveAccount(sql, as);
      const role = await findGroupRole(sql, { conversationId, accountId });
      const sentence = `${as} is not a member of group ${conversationId}, and only members can post: add ${as} to the group first`;
      if (role === null) throw new KlatchError('not_member', { sentence });
      return accountId;
    }),
  );
}

/**
 * Posts as a member. Throws the error of the reason if the post is refused: the sender is no member, the group is
 * archived, the peer blocks the sender, or a file cannot be attached.
 */
async function appendAsMember(services: Services, post: Post): Promise<Exclude<PostResult, { outcome: 'refused' }>> {
  for (let attempts = 1; ; attempts += 1) {
    const posted = await appendPost(services, post);
    if (posted.outcome !== 'refused') return posted;
    await assertMayPost(services, { conversationId: post.conversationId, accountId: post.senderId });
    await assertAttachable(services, post.senderId, post.attachments);
    if (attempts === MAX_POST_ATTEMPTS) throw notAMember(post.conversationId);
  }
}

async function assertMayPost(
  { database }: Services,
  key: { conversationId: ConversationId; accountId: AccountId },
): Promise<void> {
  await translateLostRead(
    database.general.run(async (sql) => {
      const status = await findConversationAndRole(sql, key);
      if (status === null || status.role === null) throw notAMember(key.conversationId);
      if (status.archived) throw new KlatchError('group_archived');
      if (await isBlockedByPeer(sql, key)) throw new KlatchError('blocked');
    }),
  );
}

/**
 * Appends a post to the message log. Throws `outcome_unknown`, with advice, if it is unknown whether the post is
 * stored.
 */
export async function appendPost({ messageLog }: Services, post: Post): Promise<PostResult> {
  try {
    return await messageLog.append(post);
  } catch (error) {
    if (!(error instanceof CommitUnknownError)) throw error;
    const repeat = post.admission === null ? 'Repeating it is safe with a client_id' : SAFE_REPEAT_HINT;
    const sentence = `The answer of the database was lost: the message may have been posted. ${repeat}`;
    throw new KlatchError('outcome_unknown', { sentence, cause: error });
  }
}
