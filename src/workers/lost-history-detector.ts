import { setTimeout as wait } from 'node:timers/promises';
import type { LogEpoch } from '../model/ids.ts';
import { deleteNode } from '../storage/hooks/nodes.ts';
import {
  decideTimeline,
  crashedInOtherTimeline,
  raiseForLateFinding,
  readBarrier,
  reportFinding,
} from '../storage/hooks/timeline-barrier.ts';
import { readLogEpoch } from '../storage/messages/log-epoch.ts';
import { recordLoss } from '../storage/messages/loss-record.ts';
import { findLostHeads, insertLossNotice, type LostHead } from '../storage/messages/lost-heads.ts';
import { WitnessKeeper, type WitnessKeeperDeps } from './witness-keeper.ts';

/** How long a new timeline waits for the findings of all nodes. */
const MAX_BARRIER_MS = 3_000;
const BARRIER_POLL_MS = 100;
/** Conversations whose ids are logged, each in a line of its own. */
const MAX_LOGGED_CONVERSATIONS = 100;
const MAX_NOTICE_TRIES = 5;
const NOTICE_RETRY_MS = 1_000;
const DELETE_NODE_TIMEOUT_MS = 1_000;
/** Only the start waits for these statements; a statement that takes longer fails the start. */
const START_STATEMENT_TIMEOUT_MS = 20_000;

interface LostHistoryEvents {
  /** A new timeline begins; no node has compared yet. */
  readonly onNewTimeline: () => void;
  /** The epoch was raised: clients may be ahead of the log. Nothing has been written in the timeline yet. */
  readonly onEpochRaised: (epoch: LogEpoch) => void;
}

/**
 * Detects when the database has lost committed changes, as after a failover to a standby that lagged. It compares what
 * this node knows (`Witness`) with the database at each start and in each new timeline. In a new timeline no node
 * writes to the log before all nodes have compared, for 3 s at most. If anything is missing, or a node does not report,
 * the epoch of the log is raised before the first write, once for all nodes.
 */
export class LostHistoryDetector {
  readonly #deps: WitnessKeeperDeps & { readonly node: string; readonly events: LostHistoryEvents };
  readonly #keeper: WitnessKeeper;
  #insertingLossNotices: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: WitnessKeeperDeps & { node: string; events: LostHistoryEvents }) {
    this.#deps = deps;
    this.#keeper = new WitnessKeeper(deps);
  }

  /** Resolves when this node may write to the log. Rejects when the database fails. */
  async start(): Promise<void> {
    const { database, node } = this.#deps;
    await this.#keeper.load();
    this.#keeper.start();
    database.onNewTimeline = (timeline) => this.#enterNewTimeline(timeline);
    const { timeline } = database;
    const mayHaveForgotten = await database.lease.run(
      (sql) => crashedInOtherTimeline(sql, node, timeline),
      START_STATEMENT_TIMEOUT_MS,
    );
    await this.#compareReturningEpochRaised(timeline, mayHaveForgotten, START_STATEMENT_TIMEOUT_MS);
  }

  /** Removes this node from the list: a new timeline no longer waits for it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const { database, node, log } = this.#deps;
    await this.#insertingLossNotices;
    await this.#keeper.stop();
    try {
      await database.lease.run((sql) => deleteNode(sql, node), DELETE_NODE_TIMEOUT_MS);
    } catch (error) {
      log.info('this node could not be taken from the list of nodes: the next timeline waits for it', { error });
    }
  }

  async #enterNewTimeline(timeline: number): Promise<void> {
    const { database, log, events } = this.#deps;
    log.warn('a new timeline of the database began: the lanes rest until no lease of the old one is left', {
      timeline,
    });
    events.onNewTimeline();
    if (await this.#compareReturningEpochRaised(timeline, false)) events.onEpochRaised(database.witness.logEpoch);
  }

  /** Whether the epoch was raised in this timeline. */
  async #compareReturningEpochRaised(
    timeline: number,
    mayHaveForgotten: boolean,
    timeoutMs?: number,
  ): Promise<boolean> {
    const startedAtMs = performance.now();
    const { database, node } = this.#deps;
    const { witness, lease: pool } = database;
    const lost = await pool.run((sql) => findLostHeads(sql, witness.heads), timeoutMs);
    let epochRaised = false;
    // A database server that does not report its timeline does not report a new one either: only starts compare.
    if (timeline !== 0) {
      const finding = lost.length > 0 ? 'missing' : mayHaveForgotten ? 'unknown' : 'complete';
      await pool.run((sql) => reportFinding(sql, { node, timeline, finding }), timeoutMs);
      epochRaised = await this.#awaitEpochRaiseDecision(timeline, startedAtMs, timeoutMs);
    }
    if (lost.length > 0) {
      const knownEpoch = witness.logEpoch;
      const raisedLate = await pool.transaction(
        (tx) => raiseForLateFinding(tx, { timeline, knownEpoch, lost }),
        timeoutMs,
      );
      epochRaised ||= raisedLate;
    }
    witness.logEpoch = await pool.run(readLogEpoch, timeoutMs);
    if (lost.length > 0) await this.#logAndRecordLoss(lost, timeline);
    return epochRaised;
  }

  async #awaitEpochRaiseDecision(timeline: number, startedAtMs: number, timeoutMs?: number): Promise<boolean> {
    const { database, log } = this.#deps;
    const { witness, lease: pool } = database;
    for (;;) {
      const { epochRaised, silentNodes } = await pool.run((sql) => readBarrier(sql, timeline), timeoutMs);
      if (epochRaised !== null) return epochRaised;
      const mayWait = performance.now() - startedAtMs < MAX_BARRIER_MS;
      if (!mayWait || silentNodes.length === 0) {
        const options = { timeline, mayWait, epochFloor: witness.logEpoch };
        const decided = await pool.transaction((tx) => decideTimeline(tx, options), timeoutMs);
        if (decided?.isNew === true && decided.epochRaised) {
          log.error('the epoch of the log was raised: a node misses changes, or has not said that it misses none', {
            timeline,
            silentNodes,
          });
        }
        if (decided !== null) return decided.epochRaised;
      }
      await wait(BARRIER_POLL_MS);
    }
  }

  async #logAndRecordLoss(lost: readonly LostHead[], timeline: number): Promise<void> {
    const { database, log } = this.#deps;
    const { witness } = database;
    const epoch = witness.logEpoch;
    log.error('history was lost: the database lacks changes that this server knows to have been committed', {
      timeline,
      epoch,
      conversations: lost.length,
    });
    for (const { conversationId, ...numbers } of lost.slice(0, MAX_LOGGED_CONVERSATIONS)) {
      log.error('changes of a conversation are lost', { conversation: conversationId, ...numbers });
    }
    await database.lease.run((sql) => recordLoss(sql, { at: new Date(), epoch, conversations: lost.length }));
    witness.losses.conversations += lost.length;
    witness.losses.lastAtMs = Date.now();
    witness.forget(lost.map(({ conversationId }) => conversationId));
    // Not awaited: the notices are changes of the log, which no node writes before this comparison has ended.
    this.#insertingLossNotices = this.#insertingLossNotices.then(() => this.#insertLossNotices(lost, epoch));
  }

  async #insertLossNotices(lost: readonly LostHead[], epoch: LogEpoch): Promise<void> {
    for (const head of lost) await this.#insertLossNoticeWithRetries(head, epoch);
  }

  async #insertLossNoticeWithRetries(head: LostHead, epoch: LogEpoch): Promise<void> {
    const { database, bus, log } = this.#deps;
    const { conversationId } = head;
    for (let tries = 1; !this.#stopped; tries += 1) {
      try {
        if (await database.general.transaction((tx) => insertLossNotice(tx, head, epoch)))
          bus.publish('nonMessageChangesCommitted', [conversationId]);
        return;
      } catch (error) {
        if (tries === MAX_NOTICE_TRIES) {
          log.error('a group could not be told of what it lost', { conversation: conversationId, error });
          return;
        }
        await wait(NOTICE_RETRY_MS);
      }
    }
  }
}
