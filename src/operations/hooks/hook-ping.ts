import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { HookReference } from '../../storage/hooks/hook-control.ts';
import { claimPing } from '../../storage/hooks/hook-ping.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { hookByAccess } from './hook-actor.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { categoryField, groupField, hookField, hookNumber, hostField, statusField } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';

/** All nodes together ping a hook at most once in this time. */
const MIN_PING_INTERVAL_S = 5;

const pingSchema = z.object({
  delivered: z.boolean().describe('Whether the target answered with a 2xx.'),
  category: categoryField,
  code: statusField,
  duration_ms: z.int().describe('How long it took.'),
});

/**
 * Sends a signed `webhook.ping` to the target of a hook at once, in any state of the hook, and does not change its
 * health. Throws `hook_not_found` and `ping_rate_limited`.
 */
export async function sendHookPing(
  services: Services,
  hook: HookReference,
): Promise<{ result: z.infer<typeof pingSchema>; host: string }> {
  // If the answer to this statement is lost, no ping is sent: so it is reported like the lost answer to a read.
  const pingTarget = await translateLostRead(
    services.database.general.run((sql) => claimPing(sql, hook, MIN_PING_INTERVAL_S)),
  );
  if (pingTarget === undefined) throw new KlatchError('hook_not_found');
  if (pingTarget === null) throw new KlatchError('ping_rate_limited');
  const attempt = await services.sendPingUnlessBusy(pingTarget);
  if (attempt === null) {
    const sentence = 'Too many pings are on their way; this one was not sent, please repeat it later';
    throw new KlatchError('ping_rate_limited', { sentence });
  }
  const { delivered, category, code, durationMs } = attempt;
  const result = { delivered, category, code, duration_ms: durationMs };
  return { result, host: new URL(pingTarget.url).host };
}

export const pingHook = defineTargetedOperation({
  name: 'hooks.ping',
  summary: 'Send a signed ping to the target of a reverse webhook now, and return its answer.',
  input: z.strictObject({ hook: hookNumber }),
  output: pingSchema.extend({ id: hookField, group: groupField, host: hostField }),
  who: 'group-admin',
  on: 'hook',
  scope: 'hooks:manage',
  errors: ['hook_not_found', 'ping_rate_limited'],
  run: async (services, { hook: id }, caller, access) => {
    const hook = await hookByAccess(services, access, caller);
    const { result, host } = await sendHookPing(services, hook);
    return { id, group: hook.conversationId, host, ...result };
  },
});
