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

/** While there is no device, the fan-out queries the database no more often than this. */
const NO_DEVICES_POLL_MS = 1_000;
/**
 * Conversations of one transaction, at first and at most. One after a pause: no push of a transaction is sent before
 * its commit, and the senders are idle.
 */
const MIN_BATCH_CONVERSATIONS = 1;
const MAX_BATCH_CONVERSATIONS = 100;
/** After a longer transaction the batch is halved, after a shorter one it may double. */
const LONG_BATCH_MS = 50;
const SHORT_BATCH_MS = 15;
/**
 * After a turn the worker rests for this multiple of the turn's time; the second applies while posts wait to be
 * written.
 */
const PAUSE_FACTOR = 0.5;
const BUSY_PAUSE_FACTOR = 4;
/** Notifications may be lost, and a turn may fail: a sweep examines everything from time to time. */
const SWEEP_INTERVAL_MS = 5 * 60_000;
const SWEPT_CONVERSATIONS_PER_PAGE = 500;
/** Conversations that are queued one by one; where more have changed, a sweep finds them. */
const MAX_QUEUED_CONVERSATIONS = 10_000;
const DATABASE_RETRY_DELAY_MS = 2_000;
/** How often a conversation is tried that fails on its own. */
const MAX_CONVERSATION_FAILURES = 3;

/** The dependencies of the fan-out. */
interface PushFanOutDeps {
  readonly pool: Pool;
  readonly bus: Bus;
  readonly config: PushConfig;
  readonly deviceKinds: readonly DeviceKind[];
  readonly anyDeviceCheck: AnyDeviceCheck;
  readonly foreground: () => Iterable<AccountId>;
  readonly postsWaiting: () => number;
  /** Rows were inserted or extended. */
  readonly onPendingRows: () => void;
  readonly log: Log;
}

/**
 * Turns new messages into rows of `push_pending`. It follows each conversation from its cursor in the database; a
 * notification on the bus tells only which conversations to examine. While there is no device it only checks for one.
 */
export class PushFanOut {
  readonly #deps: PushFanOutDeps;
  #queuedConversations = new Set<ConversationId>();
  readonly #stopping = new AbortController();
  /** The position of the sweep; null: none is running. */
  #sweepPosition: number | null = 0;
  #isDatabaseUnavailable = false;
  #batchConversations = MIN_BATCH_CONVERSATIONS;
  /** For conversations that failed on their own: the number of failures in a row. */
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

  /** Resolves when the current turn has ended; the next start finds the remaining work again. */
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

  /** Handles all queued work, in turns. */
  async #drain(signal: AbortSignal): Promise<void> {
    this.#batchConversations = MIN_BATCH_CONVERSATIONS;
    while (this.#hasWork && (await this.#hasDevicesElseClear(signal))) {
      const startedMs = performance.now();
      await this.#fanOutOrSweepPage(signal);
      const pauseFactor = this.#deps.postsWaiting() > 0 ? BUSY_PAUSE_FACTOR : PAUSE_FACTOR;
      await wait((performance.now() - startedMs) * pauseFactor, undefined, { signal });
    }
  }

  /** Without any device it drops the conversations that were queued before the check, and only those. */
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
        // The batch may have been too large for its time-out.
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
   * Tries conversations one by one, so that a failing one does not block the others. A device that was removed
   * meanwhile, or a lock, may be no problem at the next try, or after a rest. A conversation that always fails on its
   * own waits for the next notification or sweep.
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
    // Logs once per outage.
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
    // If a sweep was requested meanwhile, it begins from the start.
    if (this.#sweepPosition === after)
      this.#sweepPosition = found.length < SWEPT_CONVERSATIONS_PER_PAGE ? null : found.at(-1)!;
    for (const id of found) this.#queuedConversations.add(id);
  }
}

/** The first `count` values, without a copy of the others. */
function takeFirst<Value>(values: Iterable<Value>, count: number): Value[] {
  const found: Value[] = [];
  for (const value of values) {
    if (found.length === count) break;
    found.push(value);
  }
  return found;
}
