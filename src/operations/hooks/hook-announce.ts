import { setTimeout as wait } from 'node:timers/promises';
import { KlatchError } from '../../errors.ts';
import type { ConversationId, HookId } from '../../model/ids.ts';
import { PARTITIONS } from '../../storage/hooks/lanes.ts';
import { findLease, type LeaseState } from '../../storage/hooks/leases.ts';
import type { Services } from '../core/services.ts';

/** Time-out of the whole confirmation, so that a caller has its answer within the time that a request may take. */
const TOTAL_CONFIRM_TIMEOUT_MS = 9_500;
/** A healthy node confirms within this time; its lease is not read again before. */
const FIRST_CONFIRMATION_WAIT_MS = 2_000;
/** After that, the lease is read and the node is asked again at this interval. */
const LATER_CONFIRMATION_WAIT_MS = 500;
/** Wait before a database that is away is asked again. */
const DATABASE_RETRY_MS = 250;
/** Time-out of one query of the lease. */
const LEASE_QUERY_TIMEOUT_MS = 2_000;

/** Dependencies of announcing a change. */
export type AnnouncingServices = Pick<Services, 'bus' | 'database' | 'node' | 'log'>;

/** A hook that was changed, and its group. */
interface ChangedHookAndGroup {
  readonly conversationId: ConversationId;
  readonly hookId: HookId;
}

/**
 * Tells every process that a hook's row was changed (its generation was raised and committed before). Resolves once no
 * attempt can start any longer without knowing the change. Rejects with `change_unconfirmed` if this was not confirmed
 * in time; the change is stored all the same.
 *
 * Only the holder of the partition's lease starts attempts. This process knows the change when `publish` returns;
 * another holder confirms it. A holder that does not confirm has stopped when its lease ended or got another holder. A
 * later holder reads the row as it is now.
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
 * Writes a change of a hook and announces it; resolves to the result of `write`. If `write` fails, the change is
 * announced without waiting: it may have been made, with a lost answer. Rejects with what `write` rejects with, or with
 * `change_unconfirmed`.
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
