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

/** From one round to the next: a node writes one row so often where a group expects something. */
const ROUND_INTERVAL_MS = 5_000;

/** What the monitor works with. */
type ExpectationServices = Pick<Services, 'database' | 'bus' | 'messageLog' | 'log'>;

/**
 * Advances the intake clock while this node can take posts, and tells groups that a post did not come in time, or came
 * again. All nodes do it; the database decides under the head's lock which one tells a group. Started where posts can be
 * taken, stopped where they no longer can.
 */
export class ExpectationMonitor {
  /** As of the last round; null: none was completed yet. */
  overdue: number | null = null;
  readonly #services: ExpectationServices;
  /** Since when this node can take posts without a break, on the monotonic clock; at most since its last round. Null: it cannot. */
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

  /** To be called behind a post that may be the one that a group waited for. Costs nothing while nothing is overdue. */
  lookForReturned(): void {
    if (this.overdue !== 0) this.#requestRound();
  }

  /** One round. Does not reject: the next one does what this one could not. */
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

  /** Time counts once it has passed: a node that just started, or to which the database came back, adds nothing. */
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

  /** A group whose head is locked for long, or whose line cannot be written, keeps no other one waiting. */
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

/** Without elapsed times, which would be wrong later. */
function textOf({ kind, key, withinS, since }: ExpectationNews): string {
  const name = disarmMentions(key);
  if (kind === 'returned') return `🟢 ${name} is back`;
  const moment = `${since.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return `🔴 nothing from ${name} since ${moment} (expected every ${formatWithin(withinS)})`;
}
