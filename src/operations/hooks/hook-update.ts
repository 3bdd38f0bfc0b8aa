import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { newHookSecret } from '../../model/hook-secret.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import { lockGroup } from '../../storage/groups/groups.ts';
import {
  applyHookChanges,
  lockHook,
  type HookOptionsAndPauseChanges,
  type LockedHook,
} from '../../storage/hooks/hook-control.ts';
import { findHooks, markHookRemovedByClient } from '../../storage/hooks/hooks.ts';
import { insertNotice } from '../../storage/messages/notices.ts';
import { translateCommitUnknown } from '../core/database-errors.ts';
import { limitGroupHookChanges, hookByAccess, type HookAccess } from './hook-actor.ts';
import { withAnnouncedHookChange } from './hook-announce.ts';
import {
  hookDescriptionSchema,
  hookOptionChanges,
  hookOptionsSchema,
  optionsAfterChange,
  requireOptionsOfFormat,
  tokenOfFormat,
} from './hook-options.ts';
import { healthOf, hookHealthSchema, requireServerKeyForSignature, type HookHealthReport } from './hooks.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { groupField, hookField, hookNumber } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';

/**
 * Runs `work` in a transaction that locks the hook; with `needsGroupLock` it also locks the head of its group. When it
 * resolves, no node delivers any more by the former state of the hook. Throws `hook_not_found`, the errors of
 * `lockAccess` and `work`, `change_unconfirmed`, and `outcome_unknown` with `unknownOutcomeSentence`.
 */
export async function changeLockedHookAndAnnounce<T>(
  services: Services,
  hook: HookAccess,
  change: {
    unknownOutcomeSentence: string;
    needsGroupLock?: boolean;
    work: (tx: Transaction, hook: LockedHook) => Promise<T>;
  },
): Promise<T> {
  return withAnnouncedHookChange(services, hook, async () => {
    try {
      return await services.database.general.transaction(async (tx) => {
        // The head is locked before the hook, as in all code that adds a notice about a hook.
        if (change.needsGroupLock === true) await lockGroup(tx, hook.conversationId);
        await hook.lockAccess(tx);
        const locked = await lockHook(tx, hook);
        if (locked === null) throw new KlatchError('hook_not_found');
        return change.work(tx, locked);
      });
    } catch (error) {
      throw translateCommitUnknown(error, change.unknownOutcomeSentence);
    }
  });
}

/** The changes of a hook that a request asks for. The code that received the request has checked them. */
export interface HookChangesAndSecretRotation extends Omit<HookOptionsAndPauseChanges, 'secretSealed'> {
  /** True: makes a new secret. For 24 hours the old secret signs too. */
  readonly rotateSecret: boolean;
}

const UPDATE_OUTCOME_UNKNOWN_SENTENCE =
  'The hook may have been changed: look at it before you repeat it; if its secret was to be replaced, replace it again, since the new one is not shown twice';

/** The result of a change: the hook's health, and new secrets that its receiver has to know. */
interface HookUpdateResult {
  readonly health: HookHealthReport;
  readonly newSecrets: {
    /** The new secret, if one was asked for. */
    readonly secret?: string;
    /** The token that the requests of the hook carry, if its format has one and the token has changed. */
    readonly token?: string;
  };
}

/**
 * Changes how a hook delivers. An option that already has the given value is not changed. Throws `hook_not_found`,
 * `no_server_key`, `invalid_input` and `invalid_hook_url`.
 */
export async function applyHookUpdate(
  services: Services,
  hook: HookAccess,
  { rotateSecret, ...changes }: HookChangesAndSecretRotation,
): Promise<HookUpdateResult> {
  if (changes.signature !== undefined) requireServerKeyForSignature(services, changes.signature);
  const secret = rotateSecret ? newHookSecret() : null;
  const secretSealed = secret === null ? undefined : services.sealer.seal('hook-secret', secret);
  let updated: HookUpdateResult | null = null;
  const work = async (tx: Transaction, locked: LockedHook): Promise<HookUpdateResult> => {
    const options = optionsAfterChange(locked, changes);
    requireOptionsOfFormat(locked.url, options);
    const { paused, description } = changes;
    await applyHookChanges(tx, locked, { ...options, paused, description, secretSealed });
    // The health is read in the same transaction: if a read after the commit failed, nobody would learn the new secret.
    const [info] = await findHooks(tx, hook.conversationId, hook.hookId);
    const isTokenNew = secret !== null || options.format !== locked.format;
    const openSecret = (): string => secret ?? services.sealer.open('hook-secret', locked.secretSealed);
    updated = {
      health: healthOf(services, info!),
      newSecrets: {
        ...(secret === null ? {} : { secret }),
        ...(isTokenNew ? tokenOfFormat(options.format, openSecret) : {}),
      },
    };
    return updated;
  };
  try {
    return await changeLockedHookAndAnnounce(services, hook, {
      unknownOutcomeSentence: UPDATE_OUTCOME_UNKNOWN_SENTENCE,
      // A hook that begins to ask for events gets them for every change after the newest one at this moment. The lock
      // of the group's head keeps out changes meanwhile.
      needsGroupLock: changes.events !== undefined,
      work,
    });
  } catch (error) {
    // The change is stored but not confirmed. The request gets the answer of a success, since no other answer shows the
    // new secret. A node that does not know the change still signs with the old secret, which is valid for a day.
    const isUnconfirmed = error instanceof KlatchError && error.code === 'change_unconfirmed';
    if (isUnconfirmed && updated !== null && secret !== null && changes.paused !== true) return updated;
    throw error;
  }
}

/**
 * Removes a hook. When it resolves, no node starts an attempt for the hook any more. Throws `hook_not_found`. Throws
 * `change_unconfirmed` if the hook is removed, but the node that delivers for it has not confirmed this.
 */
export async function unregisterHook(services: Services, hook: HookAccess): Promise<void> {
  const { conversationId, hookId, actorId } = hook;
  const remove = async (tx: Transaction): Promise<void> => {
    const url = await markHookRemovedByClient(tx, conversationId, hookId);
    const details = { hook: hookId, host: new URL(url!).hostname };
    await insertNotice(tx, { conversationId, kind: 'hook_removed', actorId, details });
  };
  try {
    await changeLockedHookAndAnnounce(services, hook, {
      unknownOutcomeSentence: 'The hook may have been removed: repeat the request, an unknown hook is answered 410',
      needsGroupLock: true,
      work: remove,
    });
  } finally {
    // The notice is announced even after an error: the removal may have been committed.
    services.bus.publish('nonMessageChangesCommitted', [conversationId]);
  }
}

const hookChangesSchema = {
  paused: z.boolean().optional().describe('True: nothing is sent; false: it is sent again.'),
  description: hookDescriptionSchema.nullable().optional().describe('Purpose, for people to read; null: none.'),
  ...hookOptionsSchema,
  rotate_secret: z.boolean().optional().describe('Make a new secret in the place of the present one.'),
};

export const updateHook = defineTargetedOperation({
  name: 'hooks.update',
  summary: 'Pause or resume a reverse webhook, change how it delivers or what it is for, or replace its secret.',
  input: z.strictObject({ hook: hookNumber, ...hookChangesSchema }),
  output: hookHealthSchema.extend({
    id: hookField,
    group: groupField,
    secret: z.string().optional().describe('Only when it was replaced; the one before it signs too for 24 hours.'),
    token: z
      .string()
      .optional()
      .describe('With format `mattermost`, when it is another one than before: what its requests carry as `token`.'),
  }),
  who: 'group-admin',
  on: 'hook',
  scope: 'hooks:manage',
  errors: ['hook_not_found', 'invalid_hook_url', 'no_server_key', 'token_rate_limited', 'change_unconfirmed'],
  run: async (services, { hook: id, rotate_secret: rotateSecret = false, ...input }, caller, access) => {
    const { paused, description, ...options } = input;
    const hook = await hookByAccess(services, access, caller);
    limitGroupHookChanges(services, hook);
    const changes = { ...hookOptionChanges(options), paused, description, rotateSecret };
    const { health, newSecrets: shown } = await applyHookUpdate(services, hook, changes);
    return { id, group: hook.conversationId, ...health, ...shown };
  },
});

export const removeGroupHook = defineTargetedOperation({
  name: 'hooks.remove',
  summary: 'Remove a reverse webhook of a group for good.',
  input: z.strictObject({ hook: hookNumber }),
  output: z.object({ id: hookField, group: groupField }),
  who: 'group-admin',
  on: 'hook',
  scope: 'hooks:manage',
  errors: ['hook_not_found', 'change_unconfirmed'],
  run: async (services, { hook: id }, caller, access) => {
    const hook = await hookByAccess(services, access, caller);
    await unregisterHook(services, hook);
    return { id, group: hook.conversationId };
  },
});
