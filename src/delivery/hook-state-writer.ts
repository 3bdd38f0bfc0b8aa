import type { Bus } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import { parkHook, markHookRemovedByTarget, StaleLaneError } from '../storage/hooks/hook-removal.ts';
import { skipRemovedMessages } from '../storage/hooks/removed-messages.ts';
import type { LaneRow } from '../storage/hooks/lanes.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { AttemptRecord, Settlement } from '../storage/hooks/settlement.ts';
import type { Lane, RemovalResult } from './lane.ts';

/**
 * Writes those changes of a hook that its group gets a notice about:
 * - its target answered 410, so the hook is removed,
 * - it has failed for so long that it is parked,
 * - a retention rule removed messages before the hook got them.
 */
export class HookStateWriter {
  readonly #pool: Pool;
  readonly #bus: Bus;
  readonly #log: Log;

  /**
   * `pool` must not be the one for settlements: the transactions of this class may wait for the lock of the group's
   * head.
   */
  constructor(pool: Pool, bus: Bus, log: Log) {
    this.#pool = pool;
    this.#bus = bus;
    this.#log = log;
  }

  async removeGoneNotifyingGroup(lane: Lane, fence: Settlement, attempt: AttemptRecord): Promise<RemovalResult> {
    const { id, conversationId, host } = lane;
    try {
      await this.#pool.transaction((tx) =>
        markHookRemovedByTarget(tx, { settlement: fence, conversationId, host }, attempt),
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

  /**
   * Moves the cursors of hooks past messages that a retention rule removed before delivery. Rejects when the write
   * fails.
   */
  async skipRemovedMessages(rows: readonly Pick<LaneRow, 'id' | 'conversationId' | 'url'>[]): Promise<void> {
    for (const { id: hookId, conversationId, url } of rows) {
      const removed = await this.#pool.transaction((tx) => skipRemovedMessages(tx, { conversationId, hookId }));
      if (removed === null) continue;
      const host = new URL(url).hostname;
      this.#log.warn('messages of a hook were removed before they were delivered, it goes on behind them', {
        hook: hookId,
        host,
        messages: removed.messageCount,
      });
      this.#bus.publish('nonMessageChangesCommitted', [conversationId]);
    }
  }

  /**
   * Parks the hook and writes the notice for its group. False when the write failed, so that the caller must try again.
   */
  async parkNotifyingGroup(lane: Lane, settlement: Settlement): Promise<boolean> {
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
