import { schedule, type ScheduledTask } from 'node-cron';
import { ensureAttemptPartitions, removeExpired } from '../storage/retention.ts';
import type { Services } from './services.ts';

/** Every quarter of an hour: short rounds, so that nothing piles up. */
const WHEN = '*/15 * * * *';

/** Makes the delivery log's partitions ahead of time and removes what is past its retention. */
export class Housekeeping {
  readonly #services: Services;
  #task: ScheduledTask | null = null;
  #round: Promise<void> = Promise.resolve();

  constructor(services: Services) {
    this.#services = services;
  }

  /** The partitions have to be there before the first delivery; the rest can wait. */
  async start(): Promise<void> {
    const { database } = this.#services;
    await database.general.transaction((tx) => ensureAttemptPartitions(tx, Date.now()));
    this.#task = schedule(WHEN, () => {
      this.#round = this.#tidy();
    });
  }

  async stop(): Promise<void> {
    await this.#task?.destroy();
    await this.#round;
  }

  async #tidy(): Promise<void> {
    const { database, config, log } = this.#services;
    try {
      await database.general.transaction((tx) => ensureAttemptPartitions(tx, Date.now()));
      const removed = await removeExpired(database.general, config.retention, Date.now());
      log.debug('removed what is past its retention', { ...removed });
    } catch (error) {
      log.warn('the delivery log and old keys could not be tidied, trying again in a quarter of an hour', { error });
    }
  }
}
