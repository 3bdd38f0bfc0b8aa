import { schedule, type ScheduledTask } from 'node-cron';
import { EVENT_RETENTION_MS, MAX_EVENTS_PER_CONVERSATION, removeExpiredEvents } from '../storage/hooks/event-expiry.ts';
import { MAX_ALERTS_PER_CONVERSATION, removeExpiredAlerts } from '../storage/retention/alert-expiry.ts';
import { removeExpiredRefusedPosts } from '../storage/retention/refused-post-expiry.ts';
import { renewJobLock, takeFreeJobLock } from '../storage/retention/job-locks.ts';
import { ensureAttemptPartitions, removeExpiredData, type RemovedCounts } from '../storage/retention/retention.ts';
import { removeExpiredSignIns, type RemovedSignInCounts } from '../storage/retention/sign-in-expiry.ts';
import type { Services } from '../operations/core/services.ts';

/** A round begins every quarter of an hour, so that each round has little to delete. */
const SCHEDULE = '*/15 * * * *';
/**
 * The time for which a node holds the job lock of a round; each step extends it.
 * - It is longer than a step, so that no other node takes the lock during a round.
 * - It is shorter than the interval of rounds, so that a node that was killed or froze does not block the next round.
 */
const JOB_LOCK_MS = 10 * 60_000;

/** This node did not extend the job lock in time: the lock expired, and another node may have taken it. */
class JobLockLostError extends Error {
  override readonly name = 'JobLockLostError';
}

type HousekeepingServices = Pick<Services, 'database' | 'bus' | 'config' | 'node' | 'log'>;

/** The numbers of rows of each kind that a round removed. */
type RemovedRows = RemovedCounts &
  RemovedSignInCounts &
  Awaited<ReturnType<typeof removeExpiredEvents>> & { readonly alerts: number; readonly refusedPosts: number };

/**
 * Creates the partitions of the delivery log's table ahead of time, and deletes data whose retention time is over. Only
 * one node at a time does so.
 */
export class Housekeeping {
  /** `lostEvents`: events that were deleted although a hook that asks for them had not got them. */
  readonly counts = { lostEvents: 0 };
  readonly #services: HousekeepingServices;
  #task: ScheduledTask | null = null;
  #currentRun: Promise<unknown> = Promise.resolve();
  #isCleaningUp = false;

  constructor(services: HousekeepingServices) {
    this.#services = services;
  }

  /**
   * Creates the partitions of the delivery log, which must exist before the first delivery, and schedules the rounds.
   */
  async start(): Promise<void> {
    const { database } = this.#services;
    await database.general.transaction((tx) => ensureAttemptPartitions(tx, Date.now()));
    this.#task = schedule(SCHEDULE, () => {
      // A round of a large installation may last longer than the interval: then the next round is left out.
      if (this.#isCleaningUp) return;
      this.#isCleaningUp = true;
      this.#currentRun = this.runOnce().finally(() => (this.#isCleaningUp = false));
    });
  }

  async stop(): Promise<void> {
    await this.#task?.destroy();
    await this.#currentRun;
  }

  /** Runs one round. Null: the round failed, or another node is doing it or has just done it. */
  async runOnce(): Promise<RemovedRows | null> {
    const { database, config, node, log } = this.#services;
    const pool = database.general;
    try {
      if (!(await pool.run((sql) => takeFreeJobLock(sql, 'retention', node, JOB_LOCK_MS)))) return null;
      await pool.transaction((tx) => ensureAttemptPartitions(tx, Date.now()));
      const beforeStep = async (): Promise<void> => {
        if (await pool.run((sql) => renewJobLock(sql, 'retention', node, JOB_LOCK_MS))) return;
        throw new JobLockLostError('another node has taken the cleaning up over');
      };
      const round = { nowMs: Date.now(), beforeStep };
      const [expired] = await Promise.allSettled([removeExpiredData(pool, config.retention, round)]);
      // This step runs even if the step before failed. If this node has lost the job lock, this step throws at once.
      const signIns = await removeExpiredSignIns(pool, beforeStep);
      const events = await this.#removeEvents(round);
      const alerts = await removeExpiredAlerts(pool, { maxAlerts: MAX_ALERTS_PER_CONVERSATION, beforeStep });
      const refusedPosts = await removeExpiredRefusedPosts(pool, beforeStep);
      if (expired.status === 'rejected') throw expired.reason;
      const removed = { ...expired.value, ...signIns, ...events, alerts, refusedPosts };
      log.debug('removed what is past its retention', { ...removed });
      return removed;
    } catch (error) {
      log.warn('the delivery log and old keys could not be tidied, trying again in a quarter of an hour', { error });
      return null;
    }
  }

  #removeEvents(round: { nowMs: number; beforeStep: () => Promise<void> }): ReturnType<typeof removeExpiredEvents> {
    const { database, bus, log } = this.#services;
    return removeExpiredEvents(database.general, {
      writtenBefore: new Date(round.nowMs - EVENT_RETENTION_MS),
      maxEvents: MAX_EVENTS_PER_CONVERSATION,
      beforeStep: round.beforeStep,
      onEventsLost: (conversationId, count) => {
        this.counts.lostEvents += count;
        log.warn('events expired before reverse webhooks got them: see the delivery logs of the group', {
          group: conversationId,
          count,
        });
        bus.publish('hooksChanged', [conversationId]);
        bus.publish('nonMessageChangesCommitted', [conversationId]);
      },
    });
  }
}
