import { setTimeout as wait } from 'node:timers/promises';
import type { Bus } from '../bus/bus.ts';
import type { PushConfig } from '../config/config.ts';
import type { Log } from '../log.ts';
import type { DeviceKind } from '../model/device.ts';
import type { AccountId, ConversationId } from '../model/ids.ts';
import { DatabaseUnavailableError, CommitUnknownError, isTransient } from '../storage/db/database-error.ts';
import type { Pool } from '../storage/db/pool.ts';
import { fanOut, findUnpushed } from '../storage/push/push-fan-out.ts';
import type { DeviceCheck } from './device-check.ts';
import { HOLD_MS } from './vendor-queue.ts';

/** Where nobody has a device, the database is asked about that no more often than this. */
const IDLE_POLL_MS = 1_000;
/**
 * Conversations of one transaction, at first and at most: one after a pause, since nothing of a transaction is sent
 * before its end, and whoever could send has nothing else to do.
 */
const MIN_BATCH = 1;
const MAX_BATCH = 100;
/**
 * A transaction that took longer is followed by one of half as many, after a shorter one there may be twice as many.
 */
const LONG_BATCH_MS = 50;
const SHORT_BATCH_MS = 15;
/** After a turn the worker rests half as long as the turn took, and so many times as long while posts wait to be written. */
const PAUSE_FACTOR = 0.5;
const BUSY_PAUSE_FACTOR = 4;
/** Words may be lost, and a turn may fail: everything is looked through from time to time. */
const SWEEP_MS = 5 * 60_000;
const SWEEP_PAGE = 500;
/** Conversations that are remembered one by one; where more have changed, a sweep finds them. */
const MAX_QUEUED = 10_000;
const DATABASE_RETRY_MS = 2_000;
/** So often a conversation is tried that fails by itself. */
const MAX_FAILURES = 3;

/** What the fan-out works with. */
interface FanOutDeps {
  readonly pool: Pool;
  readonly bus: Bus;
  readonly config: PushConfig;
  readonly kinds: readonly DeviceKind[];
  readonly deviceCheck: DeviceCheck;
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
  readonly #deps: FanOutDeps;
  #queue = new Set<ConversationId>();
  readonly #stopping = new AbortController();
  /** Where the sweep has got to; null: none is under way. */
  #sweepPosition: number | null = 0;
  #isDatabaseUnavailable = false;
  #batchSize = MIN_BATCH;
  /** Of conversations that failed by themselves, how often in a row. */
  readonly #failures = new Map<ConversationId, number>();
  #wake: () => void = () => {};
  #running: Promise<void> | null = null;
  #unsubscribe: () => void = () => {};
  #sweepTimer: NodeJS.Timeout | null = null;

  constructor(deps: FanOutDeps) {
    this.#deps = deps;
  }

  /** Begins with a sweep over everything. */
  start(): void {
    if (this.#running !== null) return;
    this.#unsubscribe = this.#deps.bus.subscribe({
      messagesCommitted: (conversations) => this.#enqueue(conversations.keys()),
      resync: () => this.#sweep(),
    });
    this.#sweepTimer = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#running = this.#run();
  }

  /** Resolves when the turn in hand is over; what waits is found again by the next start. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    if (this.#sweepTimer !== null) clearInterval(this.#sweepTimer);
    this.#stopping.abort();
    this.#wake();
    await this.#running;
  }

  #enqueue(conversations: Iterable<ConversationId>): void {
    for (const id of conversations) this.#queue.add(id);
    if (this.#queue.size > MAX_QUEUED) {
      this.#queue.clear();
      this.#sweepPosition = 0;
    }
    this.#wake();
  }

  #sweep(): void {
    this.#sweepPosition = 0;
    this.#wake();
  }

  get #hasWork(): boolean {
    return this.#queue.size > 0 || this.#sweepPosition !== null;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { deviceCheck, config } = this.#deps;
    try {
      while (!signal.aborted) {
        if (!this.#hasWork) await new Promise<void>((resolve) => (this.#wake = resolve));
        await wait(deviceCheck.hasAny ? config.debounceMs : Math.max(config.debounceMs, IDLE_POLL_MS), undefined, {
          signal,
        });
        await this.#drain(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Everything that is there, in turns. */
  async #drain(signal: AbortSignal): Promise<void> {
    this.#batchSize = MIN_BATCH;
    while (this.#hasWork && (await this.#hasDevices(signal))) {
      const startedMs = performance.now();
      await this.#runBatch(signal);
      const pauseFactor = this.#deps.postsWaiting() > 0 ? BUSY_PAUSE_FACTOR : PAUSE_FACTOR;
      await wait((performance.now() - startedMs) * pauseFactor, undefined, { signal });
    }
  }

  /** Where nobody has a device, forgets what was heard before that was asked, and only that. */
  async #hasDevices(signal: AbortSignal): Promise<boolean> {
    const { deviceCheck } = this.#deps;
    const queued = this.#queue;
    this.#queue = new Set();
    try {
      if (!(await deviceCheck.check())) {
        this.#sweepPosition = null;
        return false;
      }
    } catch (error) {
      await this.#reportUnavailable(error, signal);
    }
    this.#queue = new Set([...queued, ...this.#queue]);
    return true;
  }

  async #runBatch(signal: AbortSignal): Promise<void> {
    const batch = firstOf(this.#queue, this.#batchSize);
    for (const id of batch) this.#queue.delete(id);
    const startedMs = performance.now();
    try {
      if (batch.length > 0) {
        await this.#fanOut(batch);
        this.#adaptBatchSize(performance.now() - startedMs, batch.length);
      } else await this.#sweepPage();
      this.#isDatabaseUnavailable = false;
      for (const id of batch) this.#failures.delete(id);
    } catch (error) {
      if (error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError) {
        for (const id of batch) this.#queue.add(id);
        // It may have been too much for its time.
        this.#batchSize = Math.ceil(this.#batchSize / 2);
        await this.#reportUnavailable(error, signal);
      } else await this.#isolateFailure(batch, error, signal);
    }
  }

  #adaptBatchSize(tookMs: number, conversations: number): void {
    if (tookMs > LONG_BATCH_MS) this.#batchSize = Math.max(1, Math.floor(conversations / 2));
    else if (tookMs < SHORT_BATCH_MS && conversations === this.#batchSize) {
      this.#batchSize = Math.min(MAX_BATCH, this.#batchSize * 2);
    }
  }

  /**
   * One by one, so that what is wrong with one does not hold up the others. A device that went in the middle, or a lock,
   * is another thing next time, or after a rest; what fails each time by itself is left to the next word or sweep.
   */
  async #isolateFailure(batch: readonly ConversationId[], error: unknown, signal: AbortSignal): Promise<void> {
    this.#batchSize = 1;
    const [id] = batch;
    if (id === undefined && isTransient(error)) return this.#reportUnavailable(error, signal);
    if (id === undefined) {
      this.#deps.log.warn('conversations could not be looked through for pushes', { error });
      this.#sweepPosition = null;
      return;
    }
    const failures = batch.length > 1 ? 0 : (this.#failures.get(id) ?? 0) + 1;
    if (failures < MAX_FAILURES) {
      for (const each of batch) this.#queue.add(each);
      if (failures > 0) this.#failures.set(id, failures);
      return;
    }
    this.#failures.delete(id);
    if (isTransient(error)) {
      this.#queue.add(id);
      return this.#reportUnavailable(error, signal);
    }
    this.#deps.log.warn('messages could not be turned into pushes', { conversation: id, error });
  }

  async #reportUnavailable(error: unknown, signal: AbortSignal): Promise<void> {
    // Once for each time.
    if (!this.#isDatabaseUnavailable) this.#deps.log.warn('messages wait to be turned into pushes', { error });
    this.#isDatabaseUnavailable = true;
    await wait(DATABASE_RETRY_MS, undefined, { signal });
  }

  async #fanOut(batch: readonly ConversationId[]): Promise<void> {
    const { pool, config, kinds, foreground, onRows } = this.#deps;
    const rules = { kinds, foreground: [...foreground()], holdMs: HOLD_MS, withinMs: config.ttlMs };
    const { rows, again } = await fanOut(pool, batch, rules);
    for (const id of again) this.#queue.add(id);
    if (rows > 0) onRows();
  }

  async #sweepPage(): Promise<void> {
    const after = this.#sweepPosition;
    if (after === null) return;
    const page = { after, limit: SWEEP_PAGE, withinMs: this.#deps.config.ttlMs };
    const found = await this.#deps.pool.run((sql) => findUnpushed(sql, page));
    // A sweep that was asked for meanwhile begins anew.
    if (this.#sweepPosition === after) this.#sweepPosition = found.length < SWEEP_PAGE ? null : found.at(-1)!;
    for (const id of found) this.#queue.add(id);
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
