import { z } from 'zod';
import type { ConversationId } from '../model/ids.ts';
import { replaceToken } from '../storage/integrations.ts';
import { newToken } from './access.ts';
import { unknownOutcome } from './database-errors.ts';
import { changeGroup } from './group-change.ts';
import { readToken, webhookUrl } from './group-view.ts';
import { definePlacedOperation } from './operation.ts';
import { readAs } from './place.ts';
import { groupReference } from './schemas.ts';
import type { Services } from './services.ts';

const tokenSchema = z.object({ group: z.int(), token: z.string(), webhook: z.string() });

export const showToken = definePlacedOperation({
  name: 'groups.token',
  summary: "Show a group's integration token and webhook URL.",
  input: z.strictObject({ group: groupReference }),
  output: tokenSchema,
  who: 'group-admin',
  on: 'group',
  scope: 'hooks:manage',
  errors: [],
  run: async (services, _input, caller, place) => {
    const { conversationId } = place;
    const token = await readAs(services, { place, caller, on: 'group', who: 'group-admin' }, (sql) =>
      readToken(services, sql, conversationId),
    );
    return tokenOf(services, conversationId, token);
  },
});

export const rotateToken = definePlacedOperation({
  name: 'groups.rotate-token',
  summary: "Replace a group's integration token; its reverse webhooks stay.",
  input: z.strictObject({ group: groupReference }),
  output: tokenSchema,
  who: 'group-admin',
  on: 'group',
  scope: 'hooks:manage',
  errors: [],
  run: async (services, _input, caller, place) => {
    const token = newToken(services.sealer);
    try {
      // Beneath the head's lock: behind every flush that was admitted with the old token.
      const old = await changeGroup(services, { place, caller, who: 'group-admin' }, async (group) => {
        await group.notice('token_rotated');
        return replaceToken(group.tx, group.conversationId, token);
      });
      if (old !== null) services.bus.publish('tokensRevoked', [old]);
    } catch (error) {
      throw unknownOutcome(error, 'The token may have been replaced: look at it before you repeat it (groups.token)');
    }
    return tokenOf(services, place.conversationId, token.token);
  },
});

function tokenOf(services: Services, id: ConversationId, token: string): z.infer<typeof tokenSchema> {
  return { group: id, token, webhook: webhookUrl(services, token) };
}
