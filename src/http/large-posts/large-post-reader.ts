import { setTimeout as wait } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { startThread } from '../../assets.ts';
import { isIgnored, type IgnoredEvent } from '../../callers/core/message-form.ts';
import { KlatchError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { ReportedAlert } from '../callers/alert-report.ts';
import type { PostContext } from '../callers/caller-input.ts';
import { formatNamed } from '../callers/caller-paths.ts';
import type { PostWithFiles } from '../post-reading.ts';
import type { ThreadAnswer, ThreadCall, ThreadResult } from './post-thread.ts';

/**
 * The thread reads only bodies larger than this: reading smaller ones holds the event loop for a few milliseconds at
 * most.
 */
export const LARGE_BODY_BYTES = 256 * 1_024;
/** The most calls that wait for the thread. A waiting call may hold a whole body. */
const MAX_WAITING_CALLS = 16;
const MAX_CALL_WAIT_MS = 8_000;
/**
 * A call that takes longer ends the thread. A call takes 0.2 s of CPU time at most, but a busy machine gives the thread
 * only a fraction of a core.
 */
const CALL_TIMEOUT_MS = 8_000;
/** The time-out from the start of a thread until it can be called. Meanwhile it compiles all formats. */
const THREAD_START_TIMEOUT_MS = 10_000;
const MIN_RESTART_INTERVAL_MS = 500;
const THREAD_STOP_TIMEOUT_MS = 500;
/**
 * Bounds the memory of the thread: a body of 4 MiB with the most allowed values takes some 100 MiB while it is read.
 */
const THREAD_HEAP_LIMITS = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 };

type AnswerableCall = Exclude<ThreadCall, { kind: 'forget' }>;

interface PendingCall {
  readonly call: AnswerableCall;
  /** Throws if the sender has used up its parse budget. */
  readonly requireBudget: () => void;
  readonly resolve: (answer: ThreadAnswer) => void;
  readonly reject: (error: Error) => void;
  readonly deadline: NodeJS.Timeout;
}

/** Charges the time of the thread to the sender of a body. */
export interface ThreadTimeCharger {
  /** Throws if the sender has used up its parse budget. Called when the thread is free for the body. */
  readonly requireBudget: () => void;
  readonly charge: (ms: number) => void;
}

export interface LargePostReaderOptions {
  readonly log: Log;
  readonly start?: typeof startThread;
  readonly callTimeoutMs?: number;
}

/** An alert whose texts the thread writes. `release` lets the thread forget the alert. */
type LargeReportedAlert = ReportedAlert & { readonly release: () => void };

/**
 * Reads large bodies in a thread, one after the other, so that none blocks the event loop. The first body starts the
 * thread. A thread that takes too long or exits is replaced.
 */
export class LargePostReader {
  readonly #options: LargePostReaderOptions;
  #thread: Worker | null = null;
  /** Fires if the thread takes too long to start; null: no thread is starting. */
  #startDeadline: NodeJS.Timeout | null = null;
  #threadStartedAtMs = -Infinity;
  #restartTimer: NodeJS.Timeout | null = null;
  #lastReadId = 0;
  #runningCall: PendingCall | null = null;
  readonly #waiting: PendingCall[] = [];
  #isStopping = false;

  constructor(options: LargePostReaderOptions) {
    this.#options = options;
  }

  /**
   * Resolves and rejects as `readPost` does. Also rejects with `overloaded` if too many calls wait or the thread is
   * lost, and with `too_large` for a body that takes too much memory. The calling code has to call `release` of an
   * alert that this resolves to.
   */
  async read(
    body: Buffer,
    { format, onFormat, ...context }: PostContext,
    charger: ThreadTimeCharger,
  ): Promise<PostWithFiles | LargeReportedAlert | IgnoredEvent> {
    const id = (this.#lastReadId += 1);
    const request = { ...context, formatName: format?.name ?? null };
    const result = await this.#call({ kind: 'read', id, body, request }, charger, onFormat);
    if (isIgnored(result)) return result;
    if ('alert' in result) {
      const { alert, text } = result;
      const thread = this.#thread;
      const writeTexts: ReportedAlert['alertPost']['writeTexts'] = async (change, shown) => {
        const written = await this.#call(
          { kind: 'write-texts', id, change, shown },
          { ...charger, requireBudget: () => {} },
        );
        return (written as Extract<ThreadResult, { texts: unknown }>).texts;
      };
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows of a browser.
      const release = (): void => thread?.postMessage({ kind: 'forget', id } satisfies ThreadCall);
      return { alertPost: { ...alert, writeTexts }, text, release };
    }
    const { message, files } = result as Extract<ThreadResult, { message: unknown }>;
    const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
      Buffer.from(buffer, byteOffset, byteLength);
    return { message, files: files.map(({ name, content }) => ({ name, content: bufferOf(content) })) };
  }

  /** Rejects waiting and running calls with `stopping`, and ends the thread. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    if (this.#restartTimer !== null) clearTimeout(this.#restartTimer);
    const thread = this.#thread;
    this.#thread = null;
    this.#clearStartDeadline();
    for (const { reject, deadline } of [...this.#waiting.splice(0), ...this.#takeRunningCall()]) {
      clearTimeout(deadline);
      reject(new KlatchError('stopping'));
    }
    if (thread !== null) await Promise.race([thread.terminate(), wait(THREAD_STOP_TIMEOUT_MS, null, { ref: false })]);
  }

  async #call(
    call: AnswerableCall,
    { requireBudget: admit, charge }: ThreadTimeCharger,
    onFormat: PostContext['onFormat'] = () => {},
  ): Promise<ThreadResult> {
    const { result, formatName, tookMs } = await this.#enqueue(call, admit);
    charge(tookMs);
    const format = formatNamed(formatName);
    if (format !== null) onFormat(format);
    if (!('errorCode' in result)) return result;
    const { errorCode, sentence, cause } = result;
    throw new KlatchError(errorCode, { sentence, ...(cause === null ? {} : { cause: new Error(cause) }) });
  }

  #enqueue(call: AnswerableCall, requireBudget: () => void): Promise<ThreadAnswer> {
    if (this.#isStopping) return Promise.reject(new KlatchError('stopping'));
    if (this.#waiting.length >= MAX_WAITING_CALLS) return Promise.reject(tooManyLargePostsError());
    return new Promise((resolve, reject) => {
      const onTimeout = (): void => {
        const at = this.#waiting.findIndex((each) => each.call === call);
        if (at >= 0) this.#waiting.splice(at, 1)[0]!.reject(tooManyLargePostsError());
      };
      const deadline = setTimeout(onTimeout, MAX_CALL_WAIT_MS);
      this.#waiting.push({ call, requireBudget, resolve, reject, deadline });
      this.#runNext();
    });
  }

  #runNext(): void {
    while (this.#runningCall === null && this.#waiting.length > 0) {
      const thread = this.#ensureThread();
      if (thread === null || this.#startDeadline !== null) return;
      const pending = this.#waiting.shift()!;
      clearTimeout(pending.deadline);
      try {
        pending.requireBudget();
      } catch (error) {
        pending.reject(error as Error);
        continue;
      }
      const { callTimeoutMs = CALL_TIMEOUT_MS } = this.#options;
      const expire = (): void => this.#onThreadLost(thread, `no answer within ${callTimeoutMs} ms`);
      this.#runningCall = { ...pending, deadline: setTimeout(expire, callTimeoutMs) };
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows of a browser.
      thread.postMessage(pending.call);
    }
  }

  /**
   * Returns the thread, and starts it if none runs. Null: the last start was too recent, or starting failed. A timer
   * then tries the waiting calls again.
   */
  #ensureThread(): Worker | null {
    if (this.#thread !== null) return this.#thread;
    const restartInMs = this.#threadStartedAtMs + MIN_RESTART_INTERVAL_MS - performance.now();
    if (restartInMs <= 0) {
      this.#threadStartedAtMs = performance.now();
      try {
        this.#thread = this.#start();
        return this.#thread;
      } catch (error) {
        this.#options.log.error('the thread that reads large posts cannot be started', { error });
      }
    }
    this.#restartTimer ??= setTimeout(
      () => {
        this.#restartTimer = null;
        this.#runNext();
      },
      Math.max(restartInMs, 1),
    );
    return null;
  }

  #start(): Worker {
    const { start = startThread } = this.#options;
    const thread = start('http/large-posts/post-thread', { name: 'posts', resourceLimits: THREAD_HEAP_LIMITS });
    thread.on('message', (answer: ThreadAnswer | 'ready') => {
      if (this.#thread !== thread) return;
      if (answer === 'ready') this.#clearStartDeadline();
      else for (const { resolve } of this.#takeRunningCall()) resolve(answer);
      this.#runNext();
    });
    thread.on('error', (error) => this.#onThreadLost(thread, 'it failed', error));
    thread.on('messageerror', (error) => this.#onThreadLost(thread, 'it cannot be understood', error));
    thread.on('exit', () => this.#onThreadLost(thread, 'it ended'));
    const expire = (): void => this.#onThreadLost(thread, `not ready within ${THREAD_START_TIMEOUT_MS} ms`);
    this.#startDeadline = setTimeout(expire, THREAD_START_TIMEOUT_MS);
    // The thread must not keep the process alive. This comes last, since adding a listener for messages would undo it.
    thread.unref();
    return thread;
  }

  /**
   * Replaces a lost thread. An exit follows an error, so this may be called twice for one thread: the second call does
   * nothing.
   */
  #onThreadLost(thread: Worker, why: string, cause?: unknown): void {
    if (this.#thread !== thread) return;
    this.#thread = null;
    this.#clearStartDeadline();
    const { code } = Object(cause) as NodeJS.ErrnoException;
    this.#options.log.warn('the thread that reads large posts is lost, the next one starts another', { why, code });
    for (const { reject } of this.#takeRunningCall()) reject(threadLostError(code, cause));
    void thread.terminate();
    this.#runNext();
  }

  #clearStartDeadline(): void {
    if (this.#startDeadline !== null) clearTimeout(this.#startDeadline);
    this.#startDeadline = null;
  }

  /** Removes the running call, and returns it as a list of one or no call. */
  #takeRunningCall(): PendingCall[] {
    const runningCall = this.#runningCall;
    this.#runningCall = null;
    if (runningCall === null) return [];
    clearTimeout(runningCall.deadline);
    return [runningCall];
  }
}

function tooManyLargePostsError(): KlatchError {
  const sentence = 'Too many large posts arrive at the same time; this one was not posted, please repeat it';
  return new KlatchError('overloaded', { sentence });
}

function threadLostError(code: string | undefined, cause: unknown): KlatchError {
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') {
    const sentence = 'The body takes more memory to read than a post may: send less at a time';
    return new KlatchError('too_large', { sentence, cause });
  }
  const sentence = 'The body was not read in time; it was not posted, please repeat it later';
  return new KlatchError('overloaded', { sentence, cause });
}
