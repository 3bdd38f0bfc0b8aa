import { disarmMentions } from '../model/mentions.ts';
import { formatWithin } from '../model/expectation.ts';
import type { ConversationId } from '../model/ids.ts';
import type { Services } from '../operations/core/services.ts';
import { CommitUnknownError } from '../storage/db/database-error.ts';
import {
  advanceIntakeClock,
  countOverdueExpectations,
  findGroupsWithExpectationNews,
  postExpectationNews,
  type ExpectationNews,
} from '../storage/groups/expectations.ts';
import { MAX_INTAKE_CLOCK_STEP_MS } from '../storage/messages/signs-of-life.ts';

/** The interval between two rounds. If any group has an expectation, each node writes one row in each round. */
const ROUND_INTERVAL_MS = 5_000;

type ExpectationServices = Pick<Services, 'database' | 'bus' | 'messageLog' | 'log'>;

/**
 * Advances the intake clock while this node can accept posts. Posts a message into a group when an expected post did
 * not come in time, and when such a post came again. All nodes run a monitor; which node posts is decided under the
 * head's lock. The server starts the monitor when it begins to accept posts, and stops it when it no longer accepts
 * them.
 */
export class ExpectationMonitor {
  /** The number of overdue expectations after the last complete round; null: no round has been completed. */
  overdueCount: number | null = null;
  readonly #services: ExpectationServices;
  /**
   * The time of the last round, on the monotonic clock, if this node accepted posts at that round. Null: it accepted
   * none, or that round failed, or there was none.
   */
  #lastOpenRoundMs: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  #currentRound: Promise<void> | null = null;
  #isRoundRequested = false;
  #isStopped = false;

  constructor(services: ExpectationServices) {
    this.#services = services;
  }

  start(): void {
    this.#timer = setInterval(() => this.#requestRound(), ROUND_INTERVAL_MS).unref();
    this.#requestRound();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#currentRound;
  }

  /**
   * Starts a round after a post that may end an overdue expectation. Does nothing if the last round found none overdue.
   */
  lookForReturned(): void {
    if (this.overdueCount !== 0) this.#requestRound();
  }

  /**
   * Runs one round: advances the intake clock, and posts what is due. Does not reject: the next round makes up for a
   * failure.
   */
  async runOnce(): Promise<void> {
    const { database, log } = this.#services;
    try {
      await this.#advanceClock();
      for (const id of await database.general.run(findGroupsWithExpectationNews)) {
        if (this.#isStopped) return;
        await this.#postNews(id);
      }
      this.overdueCount = await database.general.run(countOverdueExpectations);
    } catch (error) {
      log.debug('expectations could not be looked at, trying again in 5 s', { error });
    }
  }

  #requestRound(): void {
    this.#isRoundRequested = true;
    if (this.#currentRound !== null || this.#isStopped) return;
    this.#currentRound = this.#runRequestedRounds().finally(() => (this.#currentRound = null));
  }

  async #runRequestedRounds(): Promise<void> {
    while (this.#isRoundRequested && !this.#isStopped) {
      this.#isRoundRequested = false;
      await this.runOnce();
    }
  }

  /**
   * Adds the time since the last round to the intake clock, if this node accepted posts at both rounds. The first round
   * adds nothing, nor does the first one after the database was unavailable.
   */
  async #advanceClock(): Promise<void> {
    const { database, messageLog } = this.#services;
    const nowMs = performance.now();
    const lastOpenRoundMs = this.#lastOpenRoundMs;
    this.#lastOpenRoundMs = null;
    if (messageLog.isSuspended) return;
    if (lastOpenRoundMs !== null) {
      // An interval longer than MAX_INTAKE_CLOCK_STEP_MS means that the process was frozen, and accepted no posts
      // meanwhile.
      const openMs = Math.min(Math.floor(nowMs - lastOpenRoundMs), MAX_INTAKE_CLOCK_STEP_MS);
      await database.general.run((sql) => advanceIntakeClock(sql, openMs));
    }
    if (!messageLog.isSuspended) this.#lastOpenRoundMs = nowMs;
  }

  /**
   * Posts a group's messages about its expectations: which post is overdue, and which came again. Errors are only
   * logged, so that one group does not hold up others.
   */
  async #postNews(conversationId: ConversationId): Promise<void> {
    const { database, bus, log } = this.#services;
    try {
      const seq = await database.general.transaction((tx) => postExpectationNews(tx, conversationId, textOf));
      if (seq !== null) bus.publish('messagesCommitted', new Map([[conversationId, seq]]));
    } catch (error) {
      if (error instanceof CommitUnknownError) bus.publish('nonMessageChangesCommitted', [conversationId]);
      log.warn('a group could not be told about a post that did not come, trying again in 5 s', {
        group: conversationId,
        error,
      });
    }
  }
}

/** The text of a message. It states no elapsed times, which would become wrong. */
function textOf({ kind, key, withinS, since }: ExpectationNews): string {
  const name = disarmMentions(key);
  if (kind === 'returned') return `🟢 ${name} is back`;
  const moment = `${since.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return `🔴 nothing from ${name} since ${moment} (expected every ${formatWithin(withinS)})`;
}
