import { createHash } from 'node:crypto';
import { z } from 'zod';
import { KlatchError, SAFE_REPEAT } from '../errors.ts';
import { messageId } from '../model/ids.ts';
import { DatabaseLostError } from '../storage/database-error.ts';
import { findGroupRole } from '../storage/members.ts';
import type { Post, Posted } from '../storage/message-log-statement.ts';
import { resolveAccount, resolveGroup } from './access.ts';
import { reading } from './database-errors.ts';
import { checkMessageText } from './message-text.ts';
import { defineOperation } from './operation.ts';
import { groupReference } from './schemas.ts';
import type { Services } from './services.ts';
import { nickSchema } from './users.ts';

const keySchema = z.string().regex(/^[\x21-\x7e]{1,255}$/, 'must have 1 to 255 visible ASCII characters');

export const sendMessage = defineOperation({
  name: 'messages.send',
  summary: 'Post a message into a group as one of its members.',
  input: z.strictObject({
    group: groupReference,
    /** The nick of the member. */
    as: nickSchema,
    text: z.string(),
    /** A repeat with the same key and text posts nothing and gives the first message's id, for 24 hours. */
    idempotency_key: keySchema.optional(),
  }),
  output: z.object({ id: z.string(), group: z.int(), seq: z.int(), repeated: z.boolean() }),
  allows: (caller) => caller.kind === 'system',
  run: async (services, { group, as, text: given, idempotency_key: key }) => {
    const { database, config } = services;
    const text = checkMessageText(given, config.limits.textCodePoints);
    const conversationId = await resolveGroup(database.general, group);
    const senderId = await reading(
      database.general.run(async (sql) => {
        const { id: accountId } = await resolveAccount(sql, as);
        const role = await findGroupRole(sql, { conversationId, accountId });
        const sentence = `${as} is not a member of group ${conversationId}: only members can post`;
        if (role === null) throw new KlatchError('not_member', { sentence });
        return accountId;
      }),
    );
    const unlabelled = { tokenHash: null, label: null, iconUrl: null, hops: 0 };
    // Beside the keys of the webhook and of other members: a key means something to its own sender only.
    const keyed = { key: key === undefined ? null : `account:${senderId}:${key}`, bodyHash: null as string | null };
    if (key !== undefined) keyed.bodyHash = createHash('sha256').update(text).digest('hex');
    const posted = await appendPost(services, { ...unlabelled, ...keyed, conversationId, senderId, text });
    if (posted.outcome === 'refused') throw new KlatchError('group_archived');
    if (posted.outcome === 'repeat' && !posted.sameBody) {
      const sentence = 'This idempotency key was used for another text; use a new key for a new message';
      throw new KlatchError('key_reused', { sentence });
    }
    const { seq } = posted;
    return { id: messageId(conversationId, seq), group: conversationId, seq, repeated: posted.outcome === 'repeat' };
  },
});

/** Hands a post to the message log. Throws `outcome_unknown`, with what to do, when nobody can tell whether it is there. */
export async function appendPost({ messageLog }: Services, post: Post): Promise<Posted> {
  try {
    return await messageLog.append(post);
  } catch (error) {
    if (!(error instanceof DatabaseLostError)) throw error;
    const sentence = `The answer of the database was lost: the message may have been posted. ${SAFE_REPEAT}`;
    throw new KlatchError('outcome_unknown', { sentence, cause: error });
  }
}
