import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { ConversationId, HookId } from '../../model/ids.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import { violatesUnique } from '../../storage/db/database-error.ts';
import { lockGroup } from '../../storage/groups/groups.ts';
import type { HookDetails, ListedHook } from '../../storage/hooks/hook-list.ts';
import { countHooks, findHookByUrl, restoreTargetRemovedHook } from '../../storage/hooks/hooks.ts';
import { insertNotice } from '../../storage/messages/notices.ts';
import { resolveHookEvenRemoved } from '../core/access.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { actorByAccess, limitGroupHookChanges, type HookAccess } from './hook-actor.ts';
import { withAnnouncedHookChange } from './hook-announce.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { groupField, hookField, hookNumber, hostField } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';
import { pendingSchema } from './hooks.ts';

export const restoreRemovedHook = defineTargetedOperation({
  name: 'hooks.restore',
  summary: "Restore a reverse webhook that its target's answer 410 removed, with its id, secret and cursor.",
  input: z.strictObject({ hook: hookNumber }),
  output: z.object({ id: hookField, group: groupField, host: hostField, pending: pendingSchema }),
  who: 'group-admin',
  on: 'hook',
  scope: 'hooks:manage',
  errors: ['hook_not_restorable', 'too_many_hooks', 'hook_exists', 'token_rate_limited', 'change_unconfirmed'],
  run: async (services, { hook: id }, caller, access) => {
    const { database, bus } = services;
    const hook: HookAccess = { ...actorByAccess(access, caller), hookId: id as HookId };
    limitGroupHookChanges(services, hook);
    const { conversationId } = hook;
    const { url } = await translateLostRead(database.general.run((sql) => resolveHookEvenRemoved(sql, id)));
    try {
      return await withAnnouncedHookChange(services, hook, async () => {
        const { pending } = await database.general.transaction((tx) => restoreUnderGroupLock(services, tx, hook));
        return { id, group: conversationId, host: new URL(url).host, pending };
      });
    } catch (error) {
      if (!violatesUnique(error, 'reverse_hook_url')) throw error;
      throw await hookExistsError(services, { id, conversationId, url }, error);
    } finally {
      bus.publish('nonMessageChangesCommitted', [conversationId]);
    }
  },
});

/**
 * Restores a hook under the lock of its group's head, so that nobody else restores this hook, or registers one,
 * meanwhile.
 */
async function restoreUnderGroupLock(services: Services, tx: Transaction, access: HookAccess): Promise<HookDetails> {
  const { conversationId, hookId: id, actorId, lockAccess: admit } = access;
  const max = services.config.limits.hooksPerGroup;
  await lockGroup(tx, conversationId);
  await admit(tx);
  const hook = await resolveHookEvenRemoved(tx, id);
  requireRestorable(services, hook);
  if ((await countHooks(tx, conversationId)) >= max) {
    const sentence = `Group ${conversationId} has ${max} reverse webhooks already, as many as it may have (limits.hooks-per-group): remove one first`;
    throw new KlatchError('too_many_hooks', { sentence });
  }
  // If nothing is restored, the hook's row was deleted for good after it was read above.
  if (!(await restoreTargetRemovedHook(tx, { conversationId, hookId: id })))
    throw new KlatchError('not_found', { sentence: `There is no reverse webhook ${id}: look at the list of them` });
  const details = { hook: id, host: new URL(hook.url).hostname };
  await insertNotice(tx, { conversationId, kind: 'hook_restored', actorId, details });
  return hook;
}

async function hookExistsError(
  { database }: Services,
  hook: { id: number; conversationId: ConversationId; url: string },
  cause: unknown,
): Promise<KlatchError> {
  const { id, conversationId, url } = hook;
  const otherHookId = await translateLostRead(database.general.run((sql) => findHookByUrl(sql, conversationId, url)));
  const which = otherHookId === null ? 'another one' : `reverse webhook ${otherHookId}`;
  const sentence = `The URL of reverse webhook ${id} was registered again meanwhile, as ${which}: remove that one first, or leave it at that`;
  return new KlatchError('hook_exists', { sentence, cause });
}

/** The time until which a hook that its target removed at `removedAt` can be restored. */
export function restorableUntil({ config }: Services, removedAt: Date): Date {
  return new Date(removedAt.getTime() + config.retention.removedHooksMs);
}

/** Throws `hook_not_restorable`, with the reason, unless the hook can be restored. */
function requireRestorable(services: Services, hook: ListedHook): void {
  const notRestorable = (sentence: string): KlatchError => new KlatchError('hook_not_restorable', { sentence });
  if (hook.removedAt === null)
    throw notRestorable(`Reverse webhook ${hook.id} is not removed: there is nothing to restore`);
  // Only a hook that the target removed by answering 410 can be restored. A hook that its group deleted was not wanted
  // any more.
  if (hook.removedBy === 'client') {
    throw notRestorable(
      `Reverse webhook ${hook.id} was deleted by its group or an administrator, not by a 410 of its target: register it again`,
    );
  }
  const until = restorableUntil(services, hook.removedAt);
  if (Date.now() >= until.getTime()) {
    const sentence = `Reverse webhook ${hook.id} was removed too long ago: it could be restored until ${until.toISOString()} (retention.removed-hooks); register it again`;
    throw notRestorable(sentence);
  }
}
