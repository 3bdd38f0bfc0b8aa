import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { findExampleTarget } from '../../storage/hooks/hook-ping.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { groupField, hookField, hookNumber } from '../core/schemas.ts';
import { hookByAccess } from './hook-actor.ts';

export const exampleOfHook = defineTargetedOperation({
  name: 'hooks.example',
  summary: 'Show the signed request that the target of a reverse webhook gets for a message. Nothing is sent.',
  input: z.strictObject({ hook: hookNumber }),
  output: z.object({
    id: hookField,
    group: groupField,
    method: z.literal('POST').describe('Every delivery is a POST.'),
    url: z.string().describe('The whole target. It can contain a secret of the receiver.'),
    headers: z.record(z.string(), z.string()).describe('The headers, with the signature of this moment.'),
    body: z
      .string()
      .describe('The body for an invented message. Instead of the token of the hook, it has a placeholder.'),
  }),
  who: 'group-admin',
  on: 'hook',
  scope: 'hooks:manage',
  errors: ['hook_not_found', 'no_server_key'],
  run: async (services, { hook: id }, caller, access) => {
    const hook = await hookByAccess(services, access, caller);
    const target = await translateLostRead(services.database.general.run((sql) => findExampleTarget(sql, hook)));
    if (target === null) throw new KlatchError('hook_not_found');
    const request = services.buildExampleRequest(target);
    if (request === null) throw new KlatchError('no_server_key');
    return { id, group: hook.conversationId, method: 'POST' as const, ...request };
  },
});
