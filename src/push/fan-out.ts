import { setTimeout as wait } from 'node:timers/promises';
import type { Bus } from '../bus/bus.ts';
import type { PushConfig } from '../config/config.ts';
import type { Log } from '../log.ts';
import type { DeviceKind } from '../model/device.ts';
import type { AccountId, ConversationId } from '../model/ids.ts';
import { DatabaseAwayError, DatabaseLostError, passes } from '../storage/database-error.ts';
import type { Pool } from '../storage/pool.ts';
import { fanOut, findUnpushed } from '../storage/push-fan-out.ts';
import type { DeviceWatch } from './device-watch.ts';
import { HOLD_MS } from './vendor-queue.ts';

/** Where nobody has a device, the database is asked about that no more often than this. */
const IDLE_MS = 1_000;
/**
 * Conversations of one transaction, at first and at most: one after a pause, since nothing of a transaction is sent
 * before its end, and whoever could send has nothing else to do.
 */
const FIRST_CONVERSATIONS = 1;
const MAX_CONVERSATIONS = 100;
/**
 * A transaction that took longer is followed by one of half as many, after a shorter one there may be twice as many.
 */
const LONG_TURN_MS = 50;
const SHORT_TURN_MS = 15;
/** After a turn the worker rests half as long as the turn took, and so many times as long while posts wait to be written. */
const REST = 0.5;
const BUSY_REST = 4;
/** Words may be lost, and a turn may fail: everything is looked through from time to time. */
const SWEEP_MS = 5 * 60_000;
const SWEEP_PAGE = 500;
/** Conversations that are remembered one by one; where more have changed, a sweep finds them. */
const MAX_WAITING = 10_000;
const AWAY_MS = 2_000;
/** So often a conversation is tried that fails by itself. */
const MAX_FAILURES = 3;

/** What the fan-out works with. */
export interface FanOutParts {
  readonly pool: Pool;
  readonly bus: Bus;
  readonly config: PushConfig;
  readonly kinds: readonly DeviceKind[];
  readonly watch: DeviceWatch;
  readonly foreground: () => Iterable<AccountId>;
  readonly postsWaiting: () => number;
  /** There are rows that were not there before, or that grew. */
  readonly onRows: () => void;
  readonly log: Log;
}

/**
 * Turns new messages into rows of `push_pending`. Follows each conversation from where the database says it has got to;
 * a word on the bus says only where to look. As long as nobody has a device it does nothing but ask for one.
 */
export class FanOut {
  readonly #parts: FanOutParts;
  #waiting = new Set<ConversationId>();
  readonly #stopping = new AbortController();
  /** Where the sweep has got to; null: none is under way. */
  #sweptTo: number | null = 0;
  #isAway = false;
  #turnSize = FIRST_CONVERSATIONS;
  /** Of conversations that failed by themselves, how often in a row. */
  readonly #failures = new Map<ConversationId, number>();
  #wake: () => void = () => {};
  #working: Promise<void> | null = null;
  #unsubscribe: () => void = () => {};
  #sweeping: NodeJS.Timeout | null = null;

  constructor(parts: FanOutParts) {
    this.#parts = parts;
  }

  /** Begins with a sweep over everything. */
  start(): void {
    if (this.#working !== null) return;
    this.#unsubscribe = this.#parts.bus.subscribe({
      advanced: (conversations) => this.#hear(conversations.keys()),
      gap: () => this.#sweep(),
    });
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#working = this.#work();
  }

  /** Resolves when the turn in hand is over; what waits is found again by the next start. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    if (this.#sweeping !== null) clearInterval(this.#sweeping);
    this.#stopping.abort();
    this.#wake();
    await this.#working;
  }

  #hear(conversations: Iterable<ConversationId>): void {
    for (const id of conversations) this.#waiting.add(id);
    if (this.#waiting.size > MAX_WAITING) {
      this.#waiting.clear();
      this.#sweptTo = 0;
    }
    this.#wake();
  }

  #sweep(): void {
    this.#sweptTo = 0;
    this.#wake();
  }

  get #hasWork(): boolean {
    return this.#waiting.size > 0 || this.#sweptTo !== null;
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    const { watch, config } = this.#parts;
    try {
      while (!signal.aborted) {
        if (!this.#hasWork) await new Promise<void>((resolve) => (this.#wake = resolve));
        await wait(watch.present ? config.gatherMs : Math.max(config.gatherMs, IDLE_MS), undefined, { signal });
        await this.#round(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Everything that is there, in turns. */
  async #round(signal: AbortSignal): Promise<void> {
    this.#turnSize = FIRST_CONVERSATIONS;
    while (this.#hasWork && (await this.#isWorthIt(signal))) {
      const startedMs = performance.now();
      await this.#turn(signal);
      const rest = this.#parts.postsWaiting() > 0 ? BUSY_REST : REST;
      await wait((performance.now() - startedMs) * rest, undefined, { signal });
    }
  }

  /** Where nobody has a device, forgets what was heard before that was asked, and only that. */
  async #isWorthIt(signal: AbortSignal): Promise<boolean> {
    const { watch } = this.#parts;
    const heard = this.#waiting;
    this.#waiting = new Set();
    try {
      if (!(await watch.look())) {
        this.#sweptTo = null;
        return false;
      }
    } catch (error) {
      await this.#reportAway(error, signal);
    }
    this.#waiting = new Set([...heard, ...this.#waiting]);
    return true;
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const taken = firstOf(this.#waiting, this.#turnSize);
    for (const id of taken) this.#waiting.delete(id);
    const startedMs = performance.now();
    try {
      if (taken.length > 0) {
        await this.#fanOut(taken);
        this.#pace(performance.now() - startedMs, taken.length);
      } else await this.#sweepOn();
      this.#isAway = false;
      for (const id of taken) this.#failures.delete(id);
    } catch (error) {
      if (error instanceof DatabaseAwayError || error instanceof DatabaseLostError) {
        for (const id of taken) this.#waiting.add(id);
        // It may have been too much for its time.
        this.#turnSize = Math.ceil(this.#turnSize / 2);
        await this.#reportAway(error, signal);
      } else await this.#setApart(taken, error, signal);
    }
  }

  #pace(tookMs: number, conversations: number): void {
    if (tookMs > LONG_TURN_MS) this.#turnSize = Math.max(1, Math.floor(conversations / 2));
    else if (tookMs < SHORT_TURN_MS && conversations === this.#turnSize) {
      this.#turnSize = Math.min(MAX_CONVERSATIONS, this.#turnSize * 2);
    }
  }

  /**
   * One by one, so that what is wrong with one does not hold up the others. A device that went in the middle, or a lock,
   * is another thing next time, or after a rest; what fails each time by itself is left to the next word or sweep.
   */
  async #setApart(taken: readonly ConversationId[], error: unknown, signal: AbortSignal): Promise<void> {
    this.#turnSize = 1;
    const [id] = taken;
    if (id === undefined && passes(error)) return this.#reportAway(error, signal);
    if (id === undefined) {
      this.#parts.log.warn('conversations could not be looked through for pushes', { error });
      this.#sweptTo = null;
      return;
    }
    const failures = taken.length > 1 ? 0 : (this.#failures.get(id) ?? 0) + 1;
    if (failures < MAX_FAILURES) {
      for (const each of taken) this.#waiting.add(each);
      if (failures > 0) this.#failures.set(id, failures);
      return;
    }
    this.#failures.delete(id);
    if (passes(error)) {
      this.#waiting.add(id);
      return this.#reportAway(error, signal);
    }
    this.#parts.log.warn('messages could not be turned into pushes', { conversation: id, error });
  }

  async #reportAway(error: unknown, signal: AbortSignal): Promise<void> {
    // Once for each time.
    if (!this.#isAway) this.#parts.log.warn('messages wait to be turned into pushes', { error });
    this.#isAway = true;
    await wait(AWAY_MS, undefined, { signal });
  }

  async #fanOut(taken: readonly ConversationId[]): Promise<void> {
    const { pool, config, kinds, foreground, onRows } = this.#parts;
    const rules = { kinds, foreground: [...foreground()], holdMs: HOLD_MS, withinMs: config.giveUpAfterMs };
    const { rows, again } = await fanOut(pool, taken, rules);
    for (const id of again) this.#waiting.add(id);
    if (rows > 0) onRows();
  }

  async #sweepOn(): Promise<void> {
    const after = this.#sweptTo;
    if (after === null) return;
    const page = { after, limit: SWEEP_PAGE, withinMs: this.#parts.config.giveUpAfterMs };
    const found = await this.#parts.pool.run((sql) => findUnpushed(sql, page));
    // A sweep that was asked for meanwhile begins anew.
    if (this.#sweptTo === after) this.#sweptTo = found.length < SWEEP_PAGE ? null : found.at(-1)!;
    for (const id of found) this.#waiting.add(id);
  }
}

/** The first `count` of them, without a copy of the others. */
function firstOf<Value>(values: Iterable<Value>, count: number): Value[] {
  const found: Value[] = [];
  for (const value of values) {
    if (found.length === count) break;
    found.push(value);
  }
  return found;
}
