import { setTimeout as wait } from 'node:timers/promises';
import { KlatchError } from '../../errors.ts';
import type { ConversationId, HookId } from '../../model/ids.ts';
import { PARTITIONS } from '../../storage/hooks/lanes.ts';
import { findLease, type LeaseState } from '../../storage/hooks/leases.ts';
import type { Services } from '../core/services.ts';

/**
 * The time in which a change of a hook has to be confirmed: shorter than a request's time-out, so that the caller gets
 * an answer.
 */
const TOTAL_CONFIRM_TIMEOUT_MS = 9_500;
/**
 * A healthy node confirms a change of a hook within this time. If it does not, the caller reads again which node holds
 * the lease of the hook's partition.
 */
const FIRST_CONFIRMATION_WAIT_MS = 2_000;
/** After the first wait, the caller reads the lease and asks its holder for the confirmation again at this interval. */
const LATER_CONFIRMATION_WAIT_MS = 500;
/** The wait before the next query while the database is unavailable. */
const DATABASE_RETRY_MS = 250;
/** The time-out of one query for the lease. */
const LEASE_QUERY_TIMEOUT_MS = 2_000;

/** The services that are needed to announce a change. */
export type AnnouncingServices = Pick<Services, 'bus' | 'database' | 'node' | 'log'>;

/** A hook that was changed, and its group. */
interface ChangedHookAndGroup {
  readonly conversationId: ConversationId;
  readonly hookId: HookId;
}

/**
 * Tells every node that a hook's row was changed; the change and the hook's new generation are committed already.
 * Resolves once no delivery attempt can start any more that does not know the change. Rejects with `change_unconfirmed`
 * if this is not confirmed in time; the change is stored nevertheless.
 *
 * Only the holder of the partition's lease starts attempts. If this node is the holder, it knows the change when
 * `publish` returns; any other holder confirms it. A holder that does not confirm loses the lease in the end, and
 * starts no attempts then. Any later holder reads the changed row.
 */
export async function announceAndConfirmChange(services: AnnouncingServices, hook: ChangedHookAndGroup): Promise<void> {
  const { bus, node, log } = services;
  const deadline = performance.now() + TOTAL_CONFIRM_TIMEOUT_MS;
  const leftMs = (): number => deadline - performance.now();
  bus.publish('hooksChanged', [hook.conversationId]);
  let confirmationWaitMs = FIRST_CONFIRMATION_WAIT_MS;
  let leaseEpoch: number | null = null;
  let lastReadError: unknown;
  while (leftMs() > 0) {
    const lease = await readDeliveryLeaseOfHook(services, hook, Math.min(LEASE_QUERY_TIMEOUT_MS, leftMs())).catch(
      (error: unknown) => {
        lastReadError = error;
      },
    );
    if (lease === undefined) {
      await wait(Math.min(DATABASE_RETRY_MS, Math.max(0, leftMs())));
      continue;
    }
    if (lease.holder === null || lease.holder === node || lease.epoch !== (leaseEpoch ?? lease.epoch)) return;
    leaseEpoch = lease.epoch;
    // The wait for a confirmation ends 1 ms after the lease at the latest, since the end of the lease is rounded.
    const waitMs = Math.max(1, Math.min(confirmationWaitMs, lease.remainingMs + 1, leftMs()));
    if (await bus.confirmHooksChanged(lease.holder, hook.conversationId, waitMs)) return;
    confirmationWaitMs = LATER_CONFIRMATION_WAIT_MS;
  }
  log.warn('a change of a hook was not confirmed by the node that delivers for it', {
    hook: hook.hookId,
    error: lastReadError,
  });
  throw new KlatchError('change_unconfirmed', { cause: lastReadError });
}

function readDeliveryLeaseOfHook(
  { database }: AnnouncingServices,
  hook: ChangedHookAndGroup,
  timeoutMs: number,
): Promise<LeaseState> {
  return database.general.run((sql) => findLease(sql, hook.hookId % PARTITIONS), timeoutMs);
}

/**
 * Writes a change of a hook, and announces it as `announceAndConfirmChange` does; resolves to the result of `write`. If
 * `write` fails, the change may have been committed, so it is announced too, but no node has to confirm it. Rejects
 * with the error of `write`, or with `change_unconfirmed`.
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
