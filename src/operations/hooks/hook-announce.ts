import { setTimeout as wait } from 'node:timers/promises';
import { KlatchError } from '../../errors.ts';
import type { ConversationId, HookId } from '../../model/ids.ts';
import { PARTITIONS } from '../../storage/hooks/lanes.ts';
import { findLease, type LeaseState } from '../../storage/hooks/leases.ts';
import type { Services } from '../core/services.ts';

/** In all, so that a caller has its answer within the time that a request may take. */
const TOTAL_CONFIRM_TIMEOUT_MS = 9_500;
/** A node that is well answers within this time; until then its lease is not looked at again. */
const FIRST_CONFIRMATION_WAIT_MS = 2_000;
/** After that the lease is looked at this often, and the node asked anew. */
const LATER_CONFIRMATION_WAIT_MS = 500;
/** Rest before a database that is away is asked again. */
const DATABASE_RETRY_MS = 250;
/** One look at the lease. */
const LEASE_QUERY_TIMEOUT_MS = 2_000;

/** What announcing works with. */
export type AnnouncingServices = Pick<Services, 'bus' | 'database' | 'node' | 'log'>;

/** A hook that was changed, and its group. */
interface ChangedHookAndGroup {
  readonly conversationId: ConversationId;
  readonly hookId: HookId;
}

/**
 * Tells every process that a hook's row was changed (its generation was raised and committed before), and resolves once
 * no attempt starts any more that knows nothing of the change. Rejects with `change_unconfirmed` when that could not be
 * learnt in time; the change is stored all the same.
 *
 * Only the holder of the partition's lease starts attempts. This process has stopped by the time `publish` returns;
 * another one says so itself; one that says nothing has stopped when its lease ended or changed hands. Whoever claims the
 * partition later reads the row as it is now.
 */
export async function announceAndConfirmChange(services: AnnouncingServices, hook: ChangedHookAndGroup): Promise<void> {
  const { bus, node, log } = services;
  const deadline = performance.now() + TOTAL_CONFIRM_TIMEOUT_MS;
  const leftMs = (): number => deadline - performance.now();
  bus.publish('hooksChanged', [hook.conversationId]);
  let confirmationWaitMs = FIRST_CONFIRMATION_WAIT_MS;
  let epoch: number | null = null;
  let cause: unknown;
  while (leftMs() > 0) {
    const lease = await readDeliveryLeaseOfHook(services, hook, Math.min(LEASE_QUERY_TIMEOUT_MS, leftMs())).catch(
      (error: unknown) => {
        cause = error;
      },
    );
    if (lease === undefined) {
      await wait(Math.min(DATABASE_RETRY_MS, Math.max(0, leftMs())));
      continue;
    }
    if (lease.holder === null || lease.holder === node || lease.epoch !== (epoch ?? lease.epoch)) return;
    epoch = lease.epoch;
    // No longer than the lease lasts, and a millisecond more for the rounding of its end.
    const waitMs = Math.max(1, Math.min(confirmationWaitMs, lease.remainingMs + 1, leftMs()));
    if (await bus.confirmHooksChanged(lease.holder, hook.conversationId, waitMs)) return;
    confirmationWaitMs = LATER_CONFIRMATION_WAIT_MS;
  }
  log.warn('a change of a hook was not confirmed by the node that delivers for it', {
    hook: hook.hookId,
    error: cause,
  });
  throw new KlatchError('change_unconfirmed', { cause });
}

function readDeliveryLeaseOfHook(
  { database }: AnnouncingServices,
  hook: ChangedHookAndGroup,
  timeoutMs: number,
): Promise<LeaseState> {
  return database.general.run((sql) => findLease(sql, hook.hookId % PARTITIONS), timeoutMs);
}

/**
 * Writes a change of a hook and announces it; resolves to what was written. Where writing fails, everybody is told
 * nevertheless, without waiting: a change whose answer was lost is a change. Rejects with what `write` rejects with, or
 * with `change_unconfirmed`.
 */
export async function withAnnouncedHookChange<T>(
  services: AnnouncingServices,
  hook: ChangedHookAndGroup,
  write: () => Promise<T>,
): Promise<T> {
  let written: T;
  try {
    written = await write();
  } catch (error) {
    services.bus.publish('hooksChanged', [hook.conversationId]);
    throw error;
  }
  await announceAndConfirmChange(services, hook);
  return written;
}
