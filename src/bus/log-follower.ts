import { setTimeout as wait } from 'node:timers/promises';
import type { Log } from '../log.ts';
import type { ConversationId } from '../model/ids.ts';
import { CommitUnknownError, DatabaseUnavailableError, isTransient } from '../storage/db/database-error.ts';
import type { Bus } from './bus.ts';

/** The most queued conversations. If more have changed, the queue is emptied, and a sweep finds all of them. */
const MAX_QUEUED_CONVERSATIONS = 10_000;
const SWEPT_CONVERSATIONS_PER_PAGE = 500;
/**
 * After a batch that takes longer than LONG_BATCH_MS, the next one has half the size. After a batch that takes less
 * than SHORT_BATCH_MS, it may have twice the size.
 */
const LONG_BATCH_MS = 50;
const SHORT_BATCH_MS = 15;
/** A conversation that fails this many times in a batch of its own is skipped until its next notification or sweep. */
const MAX_CONVERSATION_FAILURES = 3;

/** The functions of the worker that a follower runs, and the follower's pace. */
export interface LogFollowerOptions {
  readonly bus: Bus;
  readonly log: Log;
  /** The kinds of notifications that mean work for the worker. */
  readonly events: readonly ('messagesCommitted' | 'nonMessageChangesCommitted')[];
  /** Finds one page of a sweep: conversations with work whose id is greater than `after`, in the order of their ids. */
  readonly findConversations: (page: { after: number; limit: number }) => Promise<readonly ConversationId[]>;
  /**
   * Processes the next changes of each conversation, from its position in the database; resolves with the conversations
   * that have more. After a rejection `process` gets the same conversations again, in smaller batches.
   */
  readonly process: (conversations: readonly ConversationId[]) => Promise<readonly ConversationId[]>;
  /** `process` gets at most this many conversations at once. The first batch after a time without work has one. */
  readonly maxBatchSize: number;
  /** Whether conversations with a notification go before those of a sweep, which may take hours after an upgrade. */
  readonly notifiedBeforeSwept: boolean;
  /** Called before each turn, and may delay it. Returns false if the queued conversations need no processing. */
  readonly beforeTurn: (signal: AbortSignal) => Promise<boolean>;
  /** How long notifications are collected before their conversations are queued. */
  readonly debounceMs: () => number;
  /** After a turn the worker pauses for this multiple of the turn's time. */
  readonly pauseFactor: () => number;
  readonly sweepIntervalMs: number;
  readonly databaseRetryDelayMs: number;
  /** The texts of the follower's lines in the log. */
  readonly texts: { readonly waitsForDatabase: string; readonly conversationSkipped: string };
}

/**
 * Runs a worker that follows the log of each conversation from a position in the database. A notification tells only
 * which conversations to process. A sweep finds those whose notification was lost: at the start, after a resync, and
 * from time to time. A turn processes one batch, or one page of the sweep if nothing is queued.
 *
 * - A conversation that fails on its own delays no other one. After three failures it waits for its next notification
 *   or sweep.
 * - While the database is unavailable nothing is dropped, and one line is logged.
 */
export class LogFollower {
  readonly #options: LogFollowerOptions;
  /** Conversations with a new notification, which are not in the queue yet. */
  readonly #notified = new Set<ConversationId>();
  #isSweepRequested = true;
  /** The conversations to process, in this order, each with the number of its failures in a row. */
  #queue = new Map<ConversationId, number>();
  /** The sweep continues after this conversation; null: no sweep is running. */
  #sweepPosition: number | null = null;
  #batchSize = 1;
  #isDatabaseUnavailable = false;
  readonly #stopping = new AbortController();
  #wake: () => void = () => {};
  #running: Promise<void> | null = null;
  #unsubscribe: () => void = () => {};
  #sweepTimer: NodeJS.Timeout | undefined;

  constructor(options: LogFollowerOptions) {
    this.#options = options;
  }

  /** Starts the worker, which begins with a sweep over all conversations. Idempotent. */
  start(): void {
    if (this.#running !== null) return;
    const { bus, events, sweepIntervalMs } = this.#options;
    this.#unsubscribe = bus.subscribe({
      messagesCommitted: (newestSeqByConversation) => {
        if (events.includes('messagesCommitted')) this.#notify(newestSeqByConversation.keys());
      },
      nonMessageChangesCommitted: (conversations) => {
        if (events.includes('nonMessageChangesCommitted')) this.#notify(conversations);
      },
      resync: (kinds) => {
        if (events.some((event) => kinds.has(event))) this.#requestSweep();
      },
    });
    this.#sweepTimer = setInterval(() => this.#requestSweep(), sweepIntervalMs);
    this.#running = this.#run(this.#stopping.signal);
  }

  /** Stops the worker; resolves when the current turn has ended. The next start finds the remaining work again. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    clearInterval(this.#sweepTimer);
    this.#stopping.abort();
    this.#wake();
    await this.#running;
  }

  #notify(conversations: Iterable<ConversationId>): void {
    for (const id of conversations) this.#notified.add(id);
    if (this.#notified.size + this.#queue.size > MAX_QUEUED_CONVERSATIONS) {
      this.#notified.clear();
      this.#queue.clear();
      this.#isSweepRequested = true;
    }
    this.#wake();
  }

  #requestSweep(): void {
    this.#isSweepRequested = true;
    this.#wake();
  }

  get #hasWork(): boolean {
    return this.#queue.size > 0 || this.#sweepPosition !== null;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { debounceMs } = this.#options;
    try {
      while (!signal.aborted) {
        if (!this.#hasWork) await this.#waitForNotifications(signal);
        this.#queueNotified();
        const endsAtMs = performance.now() + debounceMs();
        do await this.#runTurn(signal);
        while (this.#hasWork && performance.now() < endsAtMs);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #waitForNotifications(signal: AbortSignal): Promise<void> {
    this.#batchSize = 1;
    if (this.#notified.size === 0 && !this.#isSweepRequested) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    await wait(this.#options.debounceMs(), undefined, { signal });
  }

  #queueNotified(): void {
    if (this.#isSweepRequested) this.#sweepPosition = 0;
    this.#isSweepRequested = false;
    const notified = [...this.#notified];
    this.#notified.clear();
    // A conversation that is queued already keeps its number of failures.
    if (this.#options.notifiedBeforeSwept)
      this.#queue = new Map([...notified.map((id) => [id, 0] as const), ...this.#queue]);
    else for (const id of notified) this.#queue.set(id, this.#queue.get(id) ?? 0);
  }

  async #runTurn(signal: AbortSignal): Promise<void> {
    const { beforeTurn, pauseFactor } = this.#options;
    let startedMs = performance.now();
    let batch: ReadonlyMap<ConversationId, number> = new Map();
    try {
      if (!(await beforeTurn(signal))) return this.#dropQueued();
      startedMs = performance.now();
      batch = this.#takeBatch();
      if (batch.size > 0) await this.#processBatch([...batch.keys()]);
      else await this.#sweepPage();
      this.#isDatabaseUnavailable = false;
    } catch (error) {
      if (signal.aborted) throw error;
      if (this.#requeueFailed(batch, error)) return this.#waitForDatabase(error, signal);
    }
    await wait((performance.now() - startedMs) * pauseFactor(), undefined, { signal });
  }

  /** Drops the queue and the sweep. Notifications that came after the queue was filled are kept for the next turn. */
  #dropQueued(): void {
    this.#queue.clear();
    this.#sweepPosition = null;
  }

  #takeBatch(): ReadonlyMap<ConversationId, number> {
    const batch = new Map<ConversationId, number>();
    for (const [id, failures] of this.#queue) {
      if (batch.size === this.#batchSize) break;
      batch.set(id, failures);
    }
    for (const id of batch.keys()) {
      this.#queue.delete(id);
      // This turn covers everything that was committed before it, so earlier notifications need no turn of their own.
      this.#notified.delete(id);
    }
    return batch;
  }

  async #processBatch(batch: readonly ConversationId[]): Promise<void> {
    const startedMs = performance.now();
    for (const id of await this.#options.process(batch)) this.#queue.set(id, 0);
    const tookMs = performance.now() - startedMs;
    if (tookMs > LONG_BATCH_MS) this.#batchSize = Math.max(1, Math.floor(batch.length / 2));
    else if (tookMs < SHORT_BATCH_MS && batch.length === this.#batchSize)
      this.#batchSize = Math.min(this.#options.maxBatchSize, this.#batchSize * 2);
  }

  async #sweepPage(): Promise<void> {
    const after = this.#sweepPosition;
    if (after === null) return;
    const found = await this.#options.findConversations({ after, limit: SWEPT_CONVERSATIONS_PER_PAGE });
    this.#sweepPosition = found.length < SWEPT_CONVERSATIONS_PER_PAGE ? null : found.at(-1)!;
    for (const id of found) this.#queue.set(id, 0);
  }

  /**
   * Queues a failed batch again. The next batches have one conversation each, if one conversation may be the cause.
   * Some causes end before the next try: a lock, or a device that was removed meanwhile. Returns whether to wait for
   * the database.
   */
  #requeueFailed(batch: ReadonlyMap<ConversationId, number>, error: unknown): boolean {
    const isUnavailable =
      batch.size === 0 || error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError;
    // If the database seems unavailable, the batch may only have been too large for its time-out.
    this.#batchSize = isUnavailable ? Math.ceil(this.#batchSize / 2) : 1;
    const isOwnFailure = !isUnavailable && batch.size === 1;
    for (const [id, failuresBefore] of batch) {
      const failures = isOwnFailure ? failuresBefore + 1 : failuresBefore;
      if (failures < MAX_CONVERSATION_FAILURES) this.#queue.set(id, failures);
      else if (isTransient(error)) {
        this.#queue.set(id, 0);
        return true;
      } else this.#options.log.warn(this.#options.texts.conversationSkipped, { conversation: id, error });
    }
    return isUnavailable;
  }

  async #waitForDatabase(error: unknown, signal: AbortSignal): Promise<void> {
    // The follower logs one line per outage.
    if (!this.#isDatabaseUnavailable) this.#options.log.warn(this.#options.texts.waitsForDatabase, { error });
    this.#isDatabaseUnavailable = true;
    await wait(this.#options.databaseRetryDelayMs, undefined, { signal });
  }
}
