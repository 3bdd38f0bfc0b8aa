import * as z from 'zod';
import type { ConversationId } from '../model/ids.ts';
import { replaceToken } from '../storage/integrations.ts';
import { newToken } from './access.ts';
import { unknownOutcome } from './database-errors.ts';
import { changeGroup, type LockedGroup } from './group-change.ts';
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
    let token: string;
    try {
      token = await changeGroup(services, { place, caller, who: 'group-admin' }, (group) =>
        replaceGroupToken(services, group),
      );
    } catch (error) {
      throw unknownOutcome(error, 'The token may have been replaced: look at it before you repeat it (groups.token)');
    }
    return tokenOf(services, place.conversationId, token);
  },
});

/** Replaces the token under the head's lock: after every flush that was admitted with the old one. Returns the new one. */
export async function replaceGroupToken({ sealer }: Pick<Services, 'sealer'>, group: LockedGroup): Promise<string> {
  const token = newToken(sealer);
  await group.notice('token_rotated');
  const old = await replaceToken(group.tx, group.conversationId, token);
  if (old !== null) group.tokenRevoked(old);
  return token.token;
}

function tokenOf(services: Services, id: ConversationId, token: string): z.infer<typeof tokenSchema> {
  return { group: id, token, webhook: webhookUrl(services, token) };
}
