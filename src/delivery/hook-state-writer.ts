import type { Bus } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import { parkHook, removeHookByTarget, StaleLaneError } from '../storage/hooks/hook-removal.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { AttemptRecord, Settlement } from '../storage/hooks/settlement.ts';
import type { Lane, RemovalResult } from './lane.ts';

/** Writes what a group is told of: that a hook was removed by its target, or has failed for days. */
export class HookStateWriter {
  readonly #pool: Pool;
  readonly #bus: Bus;
  readonly #log: Log;

  /** Not the settling connections: these transactions may wait for the group's head. */
  constructor(pool: Pool, bus: Bus, log: Log) {
    this.#pool = pool;
    this.#bus = bus;
    this.#log = log;
  }

  async removeGoneNotifyingGroup(lane: Lane, fence: Settlement, attempt: AttemptRecord): Promise<RemovalResult> {
    const { id, conversationId, host } = lane;
    try {
      await this.#pool.transaction((tx) =>
        removeHookByTarget(tx, { settlement: fence, conversationId, host }, attempt),
      );
      this.#log.info('a target answered 410: its hook was removed', { hook: id, host });
      this.#bus.publish('hooksChanged', [conversationId]);
      this.#bus.publish('nonMessageChangesCommitted', [conversationId]);
      return 'removed';
    } catch (error) {
      if (error instanceof StaleLaneError) return 'stale';
      this.#log.warn('a hook whose target answered 410 could not be removed, trying again', { hook: id, error });
      return 'failed';
    }
  }

  /** False when it could not be written and has to be tried again. */
  async notifyGroupOfLongFailure(lane: Lane, settlement: Settlement): Promise<boolean> {
    const { id, conversationId, host } = lane;
    try {
      await this.#pool.transaction((tx) => parkHook(tx, { settlement, conversationId, host }));
      this.#bus.publish('nonMessageChangesCommitted', [conversationId]);
      const { failures, failingSince } = settlement;
      this.#log.warn('a hook has failed for so long that its group was told', {
        hook: id,
        host,
        failures,
        failingSince,
      });
      return true;
    } catch (error) {
      if (error instanceof StaleLaneError) return true;
      this.#log.warn('the notice of a parked hook could not be written, trying again', { hook: id, error });
      return false;
    }
  }
}
