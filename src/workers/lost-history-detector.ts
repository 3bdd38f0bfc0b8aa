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

/**
 * In a new timeline of the database, this node waits at most this long until all nodes have reported their findings.
 */
const MAX_BARRIER_MS = 3_000;
const BARRIER_POLL_MS = 100;
/** The log lists at most this many conversations that lost changes, each in a line of its own. */
const MAX_LOGGED_CONVERSATIONS = 100;
const MAX_NOTICE_TRIES = 5;
const NOTICE_RETRY_MS = 1_000;
const DELETE_NODE_TIMEOUT_MS = 1_000;
/** The time-out of the statements that the start waits for; a statement that takes longer makes the start fail. */
const START_STATEMENT_TIMEOUT_MS = 20_000;

interface LostHistoryEvents {
  /** Called when this node finds a new timeline, before it compares its witness with the database. */
  readonly onNewTimeline: () => void;
  /** Called when the log epoch was raised in the new timeline: clients may have changes that the log has lost. */
  readonly onEpochRaised: (epoch: LogEpoch) => void;
}

/**
 * Detects that the database has lost committed changes, for example by a failover to a standby that lagged. At each
 * start and in each new timeline, it compares this node's witness with the database. In a new timeline no node writes
 * to the log until all nodes have compared, or 3 s have passed. If changes are missing, or a node has not reported, the
 * log epoch is raised before the first write, once for all nodes.
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

  /**
   * Compares this node's witness with the database for the first time; resolves when this node may write to the log.
   * Rejects if the database fails.
   */
  async start(): Promise<void> {
    const { database, node } = this.#deps;
    await this.#keeper.load();
    this.#keeper.start();
    database.onNewTimeline = (timeline) => this.#enterNewTimeline(timeline);
    const { timeline } = database;
    const witnessMayBeIncomplete = await database.lease.run(
      (sql) => crashedInOtherTimeline(sql, node, timeline),
      START_STATEMENT_TIMEOUT_MS,
    );
    await this.#compareReturningEpochRaised(timeline, witnessMayBeIncomplete, START_STATEMENT_TIMEOUT_MS);
  }

  /** Removes this node from the list of nodes, so that a new timeline does not wait for it. */
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

  /**
   * Compares the witness with the database, and waits until it is decided whether the log epoch is raised in this
   * timeline. Resolves to whether it was raised; a loss that is found after the decision raises it too.
   */
  async #compareReturningEpochRaised(
    timeline: number,
    witnessMayBeIncomplete: boolean,
    timeoutMs?: number,
  ): Promise<boolean> {
    const startedAtMs = performance.now();
    const { database, node } = this.#deps;
    const { witness, lease: pool } = database;
    const lost = await pool.run((sql) => findLostHeads(sql, witness.heads), timeoutMs);
    let epochRaised = false;
    // Timeline 0: the database server does not report its timeline. Then no barrier is possible, and the witness is
    // compared only at a start.
    if (timeline !== 0) {
      const finding = lost.length > 0 ? 'missing' : witnessMayBeIncomplete ? 'unknown' : 'complete';
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
    // The code does not wait for the notices here: they are changes of the log, and no node writes to the log before
    // this comparison of witness and database has ended.
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
