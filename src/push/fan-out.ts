import { setTimeout as wait } from 'node:timers/promises';
import type { Bus } from '../bus/bus.ts';
import type { PushConfig } from '../config/config.ts';
import type { Log } from '../log.ts';
import type { DeviceKind } from '../model/device.ts';
import type { AccountId, ConversationId } from '../model/ids.ts';
import { DatabaseUnavailableError, CommitUnknownError, isTransient } from '../storage/db/database-error.ts';
import type { Pool } from '../storage/db/pool.ts';
import { fanOut, findUnpushedConversations } from '../storage/push/push-fan-out.ts';
import type { AnyDeviceCheck } from './any-device-check.ts';
import { FOREGROUND_HOLD_MS } from './vendor-queue.ts';

/** Where nobody has a device, the database is asked about that no more often than this. */
const NO_DEVICES_POLL_MS = 1_000;
/**
 * Conversations of one transaction, at first and at most: one after a pause, since nothing of a transaction is sent
 * before its end, and whoever could send has nothing else to do.
 */
const MIN_BATCH_CONVERSATIONS = 1;
const MAX_BATCH_CONVERSATIONS = 100;
/**
 * A transaction that took longer is followed by one of half as many, after a shorter one there may be twice as many.
 */
const LONG_BATCH_MS = 50;
const SHORT_BATCH_MS = 15;
/** After a turn the worker rests half as long as the turn took, and so many times as long while posts wait to be written. */
const PAUSE_FACTOR = 0.5;
const BUSY_PAUSE_FACTOR = 4;
/** Words may be lost, and a turn may fail: everything is looked through from time to time. */
const SWEEP_INTERVAL_MS = 5 * 60_000;
const SWEPT_CONVERSATIONS_PER_PAGE = 500;
/** Conversations that are remembered one by one; where more have changed, a sweep finds them. */
const MAX_QUEUED_CONVERSATIONS = 10_000;
const DATABASE_RETRY_DELAY_MS = 2_000;
/** So often a conversation is tried that fails by itself. */
const MAX_CONVERSATION_FAILURES = 3;

/** What the fan-out works with. */
interface PushFanOutDeps {
  readonly pool: Pool;
  readonly bus: Bus;
  readonly config: PushConfig;
  readonly deviceKinds: readonly DeviceKind[];
  readonly anyDeviceCheck: AnyDeviceCheck;
  readonly foreground: () => Iterable<AccountId>;
  readonly postsWaiting: () => number;
  /** There are rows that were not there before, or that grew. */
  readonly onPendingRows: () => void;
  readonly log: Log;
}

/**
 * Turns new messages into rows of `push_pending`. Follows each conversation from where the database says it has got to;
 * a word on the bus says only where to look. As long as nobody has a device it does nothing but ask for one.
 */
export class PushFanOut {
  readonly #deps: PushFanOutDeps;
  #queuedConversations = new Set<ConversationId>();
  readonly #stopping = new AbortController();
  /** Where the sweep has got to; null: none is under way. */
  #sweepPosition: number | null = 0;
  #isDatabaseUnavailable = false;
  #batchConversations = MIN_BATCH_CONVERSATIONS;
  /** Of conversations that failed by themselves, how often in a row. */
  readonly #failuresByConversation = new Map<ConversationId, number>();
  #wake: () => void = () => {};
  #running: Promise<void> | null = null;
  #unsubscribe: () => void = () => {};
  #sweepTimer: NodeJS.Timeout | null = null;

  constructor(deps: PushFanOutDeps) {
    this.#deps = deps;
  }

  /** Begins with a sweep over everything. */
  start(): void {
    if (this.#running !== null) return;
    this.#unsubscribe = this.#deps.bus.subscribe({
      messagesCommitted: (conversations) => this.#enqueue(conversations.keys()),
      resync: (kinds) => {
        if (kinds.has('messagesCommitted')) this.#requestSweep();
      },
    });
    this.#sweepTimer = setInterval(() => this.#requestSweep(), SWEEP_INTERVAL_MS);
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
    for (const id of conversations) this.#queuedConversations.add(id);
    if (this.#queuedConversations.size > MAX_QUEUED_CONVERSATIONS) {
      this.#queuedConversations.clear();
      this.#sweepPosition = 0;
    }
    this.#wake();
  }

  #requestSweep(): void {
    this.#sweepPosition = 0;
    this.#wake();
  }

  get #hasWork(): boolean {
    return this.#queuedConversations.size > 0 || this.#sweepPosition !== null;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { anyDeviceCheck, config } = this.#deps;
    try {
      while (!signal.aborted) {
        if (!this.#hasWork) await new Promise<void>((resolve) => (this.#wake = resolve));
        await wait(
          anyDeviceCheck.hadDeviceAtLastCheck
            ? config.pushDebounceMs
            : Math.max(config.pushDebounceMs, NO_DEVICES_POLL_MS),
          undefined,
          {
            signal,
          },
        );
        await this.#drain(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Everything that is there, in turns. */
  async #drain(signal: AbortSignal): Promise<void> {
    this.#batchConversations = MIN_BATCH_CONVERSATIONS;
    while (this.#hasWork && (await this.#hasDevicesElseClear(signal))) {
      const startedMs = performance.now();
      await this.#fanOutOrSweepPage(signal);
      const pauseFactor = this.#deps.postsWaiting() > 0 ? BUSY_PAUSE_FACTOR : PAUSE_FACTOR;
      await wait((performance.now() - startedMs) * pauseFactor, undefined, { signal });
    }
  }

  /** Where nobody has a device, forgets what was heard before that was asked, and only that. */
  async #hasDevicesElseClear(signal: AbortSignal): Promise<boolean> {
    const { anyDeviceCheck } = this.#deps;
    const queued = this.#queuedConversations;
    this.#queuedConversations = new Set();
    try {
      if (!(await anyDeviceCheck.check())) {
        this.#sweepPosition = null;
        return false;
      }
    } catch (error) {
      await this.#reportUnavailableAndWait(error, signal);
    }
    this.#queuedConversations = new Set([...queued, ...this.#queuedConversations]);
    return true;
  }

  async #fanOutOrSweepPage(signal: AbortSignal): Promise<void> {
    const batch = takeFirst(this.#queuedConversations, this.#batchConversations);
    for (const id of batch) this.#queuedConversations.delete(id);
    const startedMs = performance.now();
    try {
      if (batch.length > 0) {
        await this.#fanOut(batch);
        this.#adaptBatchSize(performance.now() - startedMs, batch.length);
      } else await this.#sweepPage();
      this.#isDatabaseUnavailable = false;
      for (const id of batch) this.#failuresByConversation.delete(id);
    } catch (error) {
      if (error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError) {
        for (const id of batch) this.#queuedConversations.add(id);
        // It may have been too much for its time.
        this.#batchConversations = Math.ceil(this.#batchConversations / 2);
        await this.#reportUnavailableAndWait(error, signal);
      } else await this.#isolateFailure(batch, error, signal);
    }
  }

  #adaptBatchSize(tookMs: number, conversations: number): void {
    if (tookMs > LONG_BATCH_MS) this.#batchConversations = Math.max(1, Math.floor(conversations / 2));
    else if (tookMs < SHORT_BATCH_MS && conversations === this.#batchConversations) {
      this.#batchConversations = Math.min(MAX_BATCH_CONVERSATIONS, this.#batchConversations * 2);
    }
  }

  /**
   * One by one, so that what is wrong with one does not hold up the others. A device that went in the middle, or a lock,
   * is another thing next time, or after a rest; what fails each time by itself is left to the next word or sweep.
   */
  async #isolateFailure(batch: readonly ConversationId[], error: unknown, signal: AbortSignal): Promise<void> {
    this.#batchConversations = 1;
    const [id] = batch;
    if (id === undefined && isTransient(error)) return this.#reportUnavailableAndWait(error, signal);
    if (id === undefined) {
      this.#deps.log.warn('conversations could not be looked through for pushes', { error });
      this.#sweepPosition = null;
      return;
    }
    const failures = batch.length > 1 ? 0 : (this.#failuresByConversation.get(id) ?? 0) + 1;
    if (failures < MAX_CONVERSATION_FAILURES) {
      for (const each of batch) this.#queuedConversations.add(each);
      if (failures > 0) this.#failuresByConversation.set(id, failures);
      return;
    }
    this.#failuresByConversation.delete(id);
    if (isTransient(error)) {
      this.#queuedConversations.add(id);
      return this.#reportUnavailableAndWait(error, signal);
    }
    this.#deps.log.warn('messages could not be turned into pushes', { conversation: id, error });
  }

  async #reportUnavailableAndWait(error: unknown, signal: AbortSignal): Promise<void> {
    // Once for each time.
    if (!this.#isDatabaseUnavailable) this.#deps.log.warn('messages wait to be turned into pushes', { error });
    this.#isDatabaseUnavailable = true;
    await wait(DATABASE_RETRY_DELAY_MS, undefined, { signal });
  }

  async #fanOut(batch: readonly ConversationId[]): Promise<void> {
    const { pool, config, deviceKinds: kindsToNotify, foreground, onPendingRows } = this.#deps;
    const rules = {
      kindsToNotify,
      foreground: [...foreground()],
      foregroundDelayMs: FOREGROUND_HOLD_MS,
      maxAgeMs: config.pushExpiresAfterMs,
    };
    const { rows, conversationsWithMore } = await fanOut(pool, batch, rules);
    for (const id of conversationsWithMore) this.#queuedConversations.add(id);
    if (rows > 0) onPendingRows();
  }

  async #sweepPage(): Promise<void> {
    const after = this.#sweepPosition;
    if (after === null) return;
    const page = { after, limit: SWEPT_CONVERSATIONS_PER_PAGE, maxAgeMs: this.#deps.config.pushExpiresAfterMs };
    const found = await this.#deps.pool.run((sql) => findUnpushedConversations(sql, page));
    // A sweep that was asked for meanwhile begins anew.
    if (this.#sweepPosition === after)
      this.#sweepPosition = found.length < SWEPT_CONVERSATIONS_PER_PAGE ? null : found.at(-1)!;
    for (const id of found) this.#queuedConversations.add(id);
  }
}

/** The first `count` of them, without a copy of the others. */
function takeFirst<Value>(values: Iterable<Value>, count: number): Value[] {
  const found: Value[] = [];
  for (const value of values) {
    if (found.length === count) break;
    found.push(value);
  }
  return found;
}
