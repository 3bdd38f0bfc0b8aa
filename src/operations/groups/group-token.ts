import * as z from 'zod';
import type { ConversationId } from '../../model/ids.ts';
import { replaceIntegrationToken } from '../../storage/groups/integrations.ts';
import { countRecentPosts } from '../../storage/groups/recent-posts.ts';
import { newIntegrationToken } from '../core/access.ts';
import { translateCommitUnknown } from '../core/database-errors.ts';
import { withLockedGroup, type LockedGroup } from '../core/group-transaction.ts';
import { readIntegrationToken, webhookUrl } from './group-view.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { readThenRecheckRole } from '../core/conversation-access.ts';
import { groupField, groupReference } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';

const groupTokenSchema = z.object({
  group: groupField,
  token: z.string().describe('The integration token: whoever has it can post.'),
  webhook: z.string().describe('Where to post: it holds the token.'),
});

const shownTokenSchema = groupTokenSchema.extend({
  last_post_at: z
    .string()
    .nullable()
    .describe(
      'Time of the newest post. Posts with an earlier token count too, and so do replies of reverse webhooks. Null: the 10,000 newest messages have no post.',
    ),
  posts_last_day: z.int().describe('Such posts of the last 24 hours, among the 10,000 newest messages.'),
});

export const showIntegrationToken = defineTargetedOperation({
  name: 'groups.show-token',
  summary: "Show a group's integration token and webhook URL, and when a program last posted.",
  input: z.strictObject({ group: groupReference }),
  output: shownTokenSchema,
  who: 'group-admin',
  on: 'group',
  scope: 'hooks:manage',
  errors: [],
  run: async (services, _input, caller, access) => {
    const { conversationId } = access;
    const request = { access, caller, on: 'group', requiredRole: 'group-admin' } as const;
    const [token, posts] = await readThenRecheckRole(
      services,
      request,
      async (sql) =>
        [
          await readIntegrationToken(services, sql, conversationId),
          await countRecentPosts(sql, conversationId),
        ] as const,
    );
    return {
      ...tokenResponse(services, conversationId, token),
      last_post_at: posts.lastPostAt?.toISOString() ?? null,
      posts_last_day: posts.lastDayCount,
    };
  },
});

export const rotateIntegrationToken = defineTargetedOperation({
  name: 'groups.rotate-token',
  summary: "Replace a group's integration token; its reverse webhooks stay.",
  input: z.strictObject({ group: groupReference }),
  output: groupTokenSchema,
  who: 'group-admin',
  on: 'group',
  scope: 'hooks:manage',
  errors: [],
  run: async (services, _input, caller, access) => {
    let token: string;
    try {
      token = await withLockedGroup(services, { access, caller, requiredRole: 'group-admin' }, (group) =>
        replaceGroupToken(services, group),
      );
    } catch (error) {
      throw translateCommitUnknown(
        error,
        'The token may have been replaced: look at it before you repeat it (groups.show-token)',
      );
    }
    return tokenResponse(services, access.conversationId, token);
  },
});

/**
 * Replaces the integration token of a locked group, and returns the new one. The lock of the group's head has waited
 * for the flushes that write posts with the old token.
 */
export async function replaceGroupToken({ sealer }: Pick<Services, 'sealer'>, group: LockedGroup): Promise<string> {
  const token = newIntegrationToken(sealer);
  await group.addNotice('token_rotated');
  const oldTokenHash = await replaceIntegrationToken(group.tx, group.conversationId, token);
  if (oldTokenHash !== null) group.queueTokenRevokedEvent(oldTokenHash);
  return token.token;
}

function tokenResponse(services: Services, id: ConversationId, token: string): z.infer<typeof groupTokenSchema> {
  return { group: id, token, webhook: webhookUrl(services, token) };
}
