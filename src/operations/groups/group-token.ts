import * as z from 'zod';
import type { ConversationId } from '../../model/ids.ts';
import { replaceToken } from '../../storage/groups/integrations.ts';
import { newIntegrationToken } from '../core/access.ts';
import { unknownOutcome } from '../core/database-errors.ts';
import { changeGroup, type LockedGroup } from '../core/group-transaction.ts';
import { readIntegrationToken, webhookUrl } from './group-view.ts';
import { defineConversationOperation } from '../core/operation.ts';
import { readAuthorized } from '../core/conversation-access.ts';
import { groupReference } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';

const tokenSchema = z.object({ group: z.int(), token: z.string(), webhook: z.string() });

export const showToken = defineConversationOperation({
  name: 'groups.show-token',
  summary: "Show a group's integration token and webhook URL.",
  input: z.strictObject({ group: groupReference }),
  output: tokenSchema,
  who: 'group-admin',
  on: 'group',
  scope: 'hooks:manage',
  errors: [],
  run: async (services, _input, caller, access) => {
    const { conversationId } = access;
    const token = await readAuthorized(services, { access, caller, on: 'group', who: 'group-admin' }, (sql) =>
      readIntegrationToken(services, sql, conversationId),
    );
    return tokenResponse(services, conversationId, token);
  },
});

export const rotateToken = defineConversationOperation({
  name: 'groups.rotate-token',
  summary: "Replace a group's integration token; its reverse webhooks stay.",
  input: z.strictObject({ group: groupReference }),
  output: tokenSchema,
  who: 'group-admin',
  on: 'group',
  scope: 'hooks:manage',
  errors: [],
  run: async (services, _input, caller, access) => {
    let token: string;
    try {
      token = await changeGroup(services, { access, caller, who: 'group-admin' }, (group) =>
        replaceGroupToken(services, group),
      );
    } catch (error) {
      throw unknownOutcome(
        error,
        'The token may have been replaced: look at it before you repeat it (groups.show-token)',
      );
    }
    return tokenResponse(services, access.conversationId, token);
  },
});

/** Replaces the token under the head's lock: after every flush that was admitted with the old one. Returns the new one. */
export async function replaceGroupToken({ sealer }: Pick<Services, 'sealer'>, group: LockedGroup): Promise<string> {
  const token = newIntegrationToken(sealer);
  await group.addNotice('token_rotated');
  const old = await replaceToken(group.tx, group.conversationId, token);
  if (old !== null) group.tokenRevoked(old);
  return token.token;
}

function tokenResponse(services: Services, id: ConversationId, token: string): z.infer<typeof tokenSchema> {
  return { group: id, token, webhook: webhookUrl(services, token) };
}
