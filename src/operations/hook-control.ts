import { z } from 'zod';
import { KlatchError } from '../errors.ts';
import { newHookSecret } from '../model/hook-secret.ts';
import type { ConversationId, HookId } from '../model/ids.ts';
import type { Transaction } from '../storage/connection.ts';
import {
  applyChanges,
  lockHook,
  type HookChanges,
  type HookReference,
  type LockedHook,
} from '../storage/hook-control.ts';
import { findHooks, removeHook } from '../storage/hooks.ts';
import { holdToken, type Integration } from '../storage/integrations.ts';
import { resolveHook } from './access.ts';
import { reading, unknownOutcome } from './database-errors.ts';
import { changeHook } from './hook-changes.ts';
import { healthOf, hookHealthSchema, requireSigning, type HookHealthReport } from './hooks.ts';
import { defineOperation } from './operation.ts';
import { hookNumber } from './schemas.ts';
import type { Services } from './services.ts';

/** The administrator's hook by its number. Throws `not_found`, and `hook_not_found` for one that was removed. */
export async function administeredHook({ database }: Services, id: number): Promise<HookReference> {
  const hook = await reading(database.general.run((sql) => resolveHook(sql, id)));
  if (hook.removedAt !== null) {
    throw new KlatchError('hook_not_found', { sentence: `Reverse webhook ${id} is removed` });
  }
  return { conversationId: hook.conversationId, hookId: hook.id };
}

/**
 * Runs `work` on a hook beneath its lock and commits; when it resolves, nothing of before is sent any more. Throws
 * `hook_not_found`, what `work` throws, `change_unheard`, and `outcome_unknown` with the sentence `unknown`.
 */
export async function controlHook<T>(
  services: Services,
  hook: HookReference,
  control: { unknown: string; work: (tx: Transaction, hook: LockedHook) => Promise<T> },
): Promise<T> {
  return changeHook(services, hook, async () => {
    try {
      return await services.database.general.transaction(async (tx) => {
        const { conversationId, tokenHash } = hook;
        // A body may take its time: a token that was rotated meanwhile changes nothing any more.
        if (tokenHash !== undefined && !(await holdToken(tx, conversationId, tokenHash)))
          throw new KlatchError('wrong_token');
        const locked = await lockHook(tx, hook);
        if (locked === null) throw new KlatchError('hook_not_found');
        return control.work(tx, locked);
      });
    } catch (error) {
      throw unknownOutcome(error, control.unknown);
    }
  });
}

/**
 * Counts a request that changes a hook or sends its messages again. Throws `rate_exceeded` when a group has made as many
 * in the last minute as it may. The administrator's are not counted.
 */
export function countHookChange({ hookChanges, config }: Services, conversationId: ConversationId): void {
  if (hookChanges.reserve(conversationId, 0) !== null) return;
  const sentence = `A group takes ${config.limits.hookChangesPerMinute} changes of its reverse webhooks a minute, refused ones too; nothing was done, please repeat it later`;
  throw new KlatchError('rate_exceeded', { sentence });
}

/** What of a hook is to be changed, checked by its edge. */
export interface HookUpdate extends Omit<HookChanges, 'secretSealed'> {
  /** A new secret; the one until now signs beside it for 24 hours. */
  readonly rotateSecret: boolean;
}

const UPDATE_UNKNOWN =
  'The hook may have been changed: look at it before you repeat it; if its secret was to be replaced, replace it again, since the new one is not shown twice';

/**
 * Changes how a hook delivers; what is so already stays without a trace. Resolves with its health, and its new secret if
 * it was to get one. Throws `hook_not_found` and `no_server_key`.
 */
export async function updateHook(
  services: Services,
  hook: HookReference,
  { rotateSecret, ...changes }: HookUpdate,
): Promise<{ health: HookHealthReport; secret: string | null }> {
  if (changes.signature !== undefined) requireSigning(services, changes.signature);
  const secret = rotateSecret ? newHookSecret() : null;
  const secretSealed = secret === null ? undefined : services.sealer.seal('hook-secret', secret);
  let updated: { health: HookHealthReport; secret: string | null } | null = null;
  const work = async (tx: Transaction, locked: LockedHook): Promise<NonNullable<typeof updated>> => {
    await applyChanges(tx, locked, { ...changes, secretSealed });
    // In the same transaction: a secret whose answer fails after the commit would be known to nobody.
    const [info] = await findHooks(tx, hook.conversationId, hook.hookId);
    updated = { health: healthOf(services, info!), secret };
    return updated;
  };
  try {
    return await controlHook(services, hook, { unknown: UPDATE_UNKNOWN, work });
  } catch (error) {
    // A node that has not heard of it signs with the old secret, which holds for a day. The new one is shown only here.
    const isUnheard = error instanceof KlatchError && error.code === 'change_unheard';
    if (isUnheard && updated !== null && secret !== null && changes.paused !== true) return updated;
    throw error;
  }
}

/**
 * Removes a hook; when it resolves, no new attempt starts on any node. Throws `hook_not_found`, and `change_unheard` for a
 * hook that is removed and whose node has not confirmed it.
 */
export async function unregisterHook(services: Services, hook: HookReference): Promise<void> {
  await controlHook(services, hook, {
    unknown: 'The hook may have been removed: repeat the request, an unknown hook is answered 410',
    work: (tx) => removeHook(tx, hook.conversationId, hook.hookId),
  });
}

/** What can be changed of a hook, as every edge takes it. */
export const hookChangesSchema = {
  paused: z.boolean().optional(),
  order: z.enum(['strict', 'none']).optional(),
  batch: z.int().min(1).max(100).optional(),
  signature: z.enum(['v1', 'v1a', 'both']).optional(),
  skip: z
    .array(z.enum(['webhook', 'bot']))
    .max(2)
    .optional(),
  rotate_secret: z.boolean().optional(),
};

export const updateAnyHook = defineOperation({
  name: 'hooks.update',
  summary: 'Pause or resume a reverse webhook, change how it delivers, or replace its secret.',
  input: z.strictObject({ hook: hookNumber, ...hookChangesSchema }),
  output: hookHealthSchema.extend({
    id: z.int(),
    group: z.int(),
    /** Only when it was replaced; the one before it signs too for 24 hours. */
    secret: z.string().optional(),
  }),
  allows: (caller) => caller.kind === 'system',
  run: async (services, { hook: id, rotate_secret: rotateSecret = false, ...changes }) => {
    const hook = await administeredHook(services, id);
    const { health, secret } = await updateHook(services, hook, { ...changes, rotateSecret });
    return { id, group: hook.conversationId, ...health, ...(secret === null ? {} : { secret }) };
  },
});

export const removeAnyHook = defineOperation({
  name: 'hooks.remove',
  summary: 'Remove a reverse webhook of any group for good.',
  input: z.strictObject({ hook: hookNumber }),
  output: z.object({ id: z.int(), group: z.int() }),
  allows: (caller) => caller.kind === 'system',
  run: async (services, { hook: id }) => {
    const hook = await administeredHook(services, id);
    await unregisterHook(services, hook);
    return { id, group: hook.conversationId };
  },
});

/** The hook of a token's group; whether there is one says what is done with it. */
export function hookOfGroup({ conversationId, tokenHash }: Integration, id: number): HookReference {
  return { conversationId, hookId: id as HookId, tokenHash };
}
