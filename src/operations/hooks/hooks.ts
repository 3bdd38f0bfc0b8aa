import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { hookState } from '../../model/hook.ts';
import type { ConversationId, HookId } from '../../model/ids.ts';
import { newHookSecret } from '../../model/hook-secret.ts';
import type { Sql } from '../../storage/db/connection.ts';
import { violatesUnique } from '../../storage/db/database-error.ts';
import { lockGroup } from '../../storage/groups/groups.ts';
import type { HookReference } from '../../storage/hooks/hook-control.ts';
import { countHooks, findHooks, insertHook } from '../../storage/hooks/hooks.ts';
import type { HookInfo, HookSignature, NewHook } from '../../storage/hooks/hooks.ts';
import { insertNotice } from '../../storage/messages/notices.ts';
import { translateLostRead, translateCommitUnknown } from '../core/database-errors.ts';
import type { HookActor } from './hook-actor.ts';
import { requireOptionsOfFormat, tokenOfFormat } from './hook-options.ts';
import { parseHookUrl } from './hook-url.ts';
import type { Services } from '../core/services.ts';
import { hookField, categoryField, statusField } from '../core/schemas.ts';

export const hookStateSchema = z
  .enum(['active', 'failing', 'parked', 'paused'])
  .describe('State; docs/reverse-webhooks.md explains the states.');
export const pendingSchema = z.int().describe('Messages and events that the hook has still to get.');

/** A hook in the list of its group. */
export const hookSummarySchema = z.object({
  id: hookField,
  url: z.string().describe('The whole target.'),
  state: hookStateSchema,
  pending: pendingSchema,
});

export const hookHealthSchema = z.object({
  state: hookStateSchema,
  pending: pendingSchema,
  oldest_pending_at: z
    .string()
    .nullable()
    .describe('Time of the post of the oldest of them; null: nothing is pending.'),
  last_success_at: z.string().nullable().describe('Time of the last delivery that the target took; null: none yet.'),
  last_error: z
    .object({ at: z.string().describe('Time of the failure.'), category: categoryField, code: statusField })
    .nullable()
    .describe('The last failed attempt; null: none failed.'),
  next_attempt_at: z.string().nullable().describe('Time of the next attempt; null: no retry is planned.'),
});

export type HookHealthReport = z.infer<typeof hookHealthSchema>;

/** The hook that a registration asks for. The code that received the request has checked it, except for the URL. */
export type RequestedHook = Omit<NewHook, 'conversationId' | 'secretSealed' | 'startAfterSeq' | 'startAfterRev'>;

/**
 * Counts a registration, before its input is read. Throws `token_rate_limited` if the group has made too many in the
 * last minute.
 */
export function limitGroupHookRegistrations(
  { config, hookRegistrationLimiterByGroup }: Services,
  actor: HookActor,
): void {
  if (!actor.isSubjectToRateLimit || hookRegistrationLimiterByGroup.reserve(actor.conversationId, 0) !== null) return;
  const sentence = `A group takes ${config.limits.hookRegistrationsPerGroupPerMinute} registrations a minute, refused ones too; please repeat it later`;
  throw new KlatchError('token_rate_limited', { sentence });
}

/**
 * Registers a reverse webhook, which gets every message that is committed after it. The caller has counted the
 * registration. Throws the errors of `lockAccess`, `invalid_hook_url`, `hook_address_forbidden`, `invalid_input`,
 * `no_server_key`, `too_many_hooks` and `hook_exists`. `token` is the token that the hook's requests carry, if its
 * format has one.
 */
export async function registerNewHook(
  services: Services,
  actor: HookActor,
  request: RequestedHook,
): Promise<{ id: HookId; secret: string; token?: string }> {
  const { database, sealer, bus, config, policy } = services;
  const { conversationId, actorId } = actor;
  const url = parseHookUrl(request.url, policy);
  requireOptionsOfFormat(url, request);
  requireServerKeyForSignature(services, request.signature);
  const secret = newHookSecret();
  const secretSealed = sealer.seal('hook-secret', secret);
  try {
    const id = await database.general.transaction(async (tx) => {
      // Under the lock of the group's head nobody else numbers messages or changes, or counts hooks. So the hook's
      // first message is exact, and the group gets no more hooks than allowed.
      const groupHead = await lockGroup(tx, conversationId);
      // The actor's access is checked under the head's lock, for which a replacement of the integration token waits
      // too. So after a replacement, the old token registers nothing.
      await actor.lockAccess(tx);
      const { lastSeq: startAfterSeq, lastRev: startRev } = groupHead!;
      const hook: NewHook = { ...request, url, conversationId, secretSealed, startAfterSeq, startAfterRev: startRev };
      if ((await countHooks(tx, conversationId)) >= config.limits.hooksPerGroup) {
        const sentence = `A group has at most ${config.limits.hooksPerGroup} reverse webhooks (limits.hooks-per-group): remove one first`;
        throw new KlatchError('too_many_hooks', { sentence });
      }
      const hookId = await insertHook(tx, hook);
      const details = { hook: hookId, host: new URL(url).hostname };
      await insertNotice(tx, { conversationId, kind: 'hook_added', actorId, details });
      return hookId;
    });
    return { id, secret, ...tokenOfFormat(request.format, () => secret) };
  } catch (error) {
    if (violatesUnique(error, 'reverse_hook_url')) throw new KlatchError('hook_exists', { cause: error });
    throw translateCommitUnknown(error, 'The hook may have been registered: look at the list before you repeat it');
  } finally {
    // The events are published even after an error: the registration may have been committed.
    bus.publish('hooksChanged', [conversationId]);
    bus.publish('nonMessageChangesCommitted', [conversationId]);
  }
}

/** Throws `no_server_key` if the signature needs a server key and there is none: the hook would deliver nothing. */
export function requireServerKeyForSignature({ serverKeys }: Services, signature: HookSignature): void {
  if (signature !== 'v1' && serverKeys.length === 0) throw new KlatchError('no_server_key');
}

/** The group's hooks, oldest first. */
export function queryGroupHookSummaries(
  services: Services,
  conversationId: ConversationId,
): Promise<z.infer<typeof hookSummarySchema>[]> {
  return translateLostRead(services.database.general.run((sql) => readHookSummaries(services, sql, conversationId)));
}

/** The group's hooks, oldest first, read with the given connection. */
export async function readHookSummaries(
  services: Services,
  sql: Sql,
  conversationId: ConversationId,
): Promise<z.infer<typeof hookSummarySchema>[]> {
  const hooks = await findHooks(sql, conversationId, null);
  return hooks.map((hook) => ({ id: hook.id, url: hook.url, state: stateOf(services, hook), pending: hook.pending }));
}

/** Reads the health of a hook. Throws `hook_not_found`. */
export async function readHookHealth(services: Services, reference: HookReference): Promise<HookHealthReport> {
  const { conversationId, hookId } = reference;
  const [hook] = await translateLostRead(
    services.database.general.run((sql) => findHooks(sql, conversationId, hookId)),
  );
  if (hook === undefined) throw new KlatchError('hook_not_found');
  return healthOf(services, hook);
}

/** The health of a hook as every interface shows it. */
export function healthOf(services: Services, hook: HookInfo): HookHealthReport {
  const iso = (date: Date | null): string | null => date?.toISOString() ?? null;
  return {
    state: stateOf(services, hook),
    pending: hook.pending,
    oldest_pending_at: iso(hook.oldestPendingAt),
    last_success_at: iso(hook.lastSuccessAt),
    last_error:
      hook.lastErrorAt === null
        ? null
        : { at: hook.lastErrorAt.toISOString(), category: hook.lastErrorCategory, code: hook.lastErrorCode },
    next_attempt_at: iso(hook.nextAttemptAt),
  };
}

function stateOf({ config }: Services, hook: HookInfo): z.infer<typeof hookStateSchema> {
  return hookState(hook, Date.now(), config.delivery.parkAfterMs);
}
