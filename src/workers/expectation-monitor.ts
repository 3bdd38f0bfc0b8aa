import { disarmMentions } from '../model/mentions.ts';
import { formatWithin } from '../model/expectation.ts';
import type { ConversationId } from '../model/ids.ts';
import type { Services } from '../operations/core/services.ts';
import { CommitUnknownError } from '../storage/db/database-error.ts';
import {
  advanceIntakeClock,
  countOverdueExpectations,
  findConversationsWithNews,
  tellGroup,
  type ExpectationNews,
} from '../storage/groups/expectations.ts';
import { MAX_INTAKE_CLOCK_STEP_MS } from '../storage/messages/signs-of-life.ts';

/** The interval between two rounds: each node writes one row per round if any group has an expectation. */
const ROUND_INTERVAL_MS = 5_000;

/** The services that the monitor uses. */
type ExpectationServices = Pick<Services, 'database' | 'bus' | 'messageLog' | 'log'>;

/**
 * Advances the intake clock while this node can take posts. It posts to groups when an expected post did not come in
 * time, or came again. All nodes run a monitor; the database decides under the head's lock which node posts. The server
 * starts the monitor when posts can be taken, and stops it when they no longer can.
 */
export class ExpectationMonitor {
  /** The number of overdue expectations as of the last round; null: no round was completed yet. */
  overdue: number | null = null;
  readonly #services: ExpectationServices;
  /**
   * Since when, on the monotonic clock, this node can take posts without a break; never before its last round. Null: it
   * cannot.
   */
  #openSinceMs: number | null = null;
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

  /** Called after a post that an overdue expectation may wait for. Costs nothing while nothing is overdue. */
  lookForReturned(): void {
    if (this.overdue !== 0) this.#requestRound();
  }

  /** Runs one round. Does not reject: the next round does the rest. */
  async runOnce(): Promise<void> {
    const { database, log } = this.#services;
    try {
      await this.#advanceClock();
      for (const id of await database.general.run(findConversationsWithNews)) {
        if (this.#isStopped) return;
        await this.#tell(id);
      }
      this.overdue = await database.general.run(countOverdueExpectations);
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
   * Adds the time since the last round, if this node could take posts all along. A node that just started, or whose
   * database just returned, adds nothing.
   */
  async #advanceClock(): Promise<void> {
    const { database, messageLog } = this.#services;
    const nowMs = performance.now();
    const openSinceMs = this.#openSinceMs;
    this.#openSinceMs = null;
    if (messageLog.isSuspended) return;
    if (openSinceMs !== null) {
      // A process that was stopped for longer took no posts meanwhile.
      const openMs = Math.min(Math.floor(nowMs - openSinceMs), MAX_INTAKE_CLOCK_STEP_MS);
      await database.general.run((sql) => advanceIntakeClock(sql, openMs));
    }
    if (!messageLog.isSuspended) this.#openSinceMs = nowMs;
  }

  /** A group whose head is locked for long, or whose message cannot be written, does not delay others. */
  async #tell(conversationId: ConversationId): Promise<void> {
    const { database, bus, log } = this.#services;
    try {
      const seq = await database.general.transaction((tx) => tellGroup(tx, conversationId, textOf));
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

/** The text names no elapsed times, which would become wrong. */
function textOf({ kind, key, withinS, since }: ExpectationNews): string {
  const name = disarmMentions(key);
  if (kind === 'returned') return `🟢 ${name} is back`;
  const moment = `${since.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return `🔴 nothing from ${name} since ${moment} (expected every ${formatWithin(withinS)})`;
}
