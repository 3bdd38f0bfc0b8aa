import { setTimeout as wait } from 'node:timers/promises';
import { textOf } from './recorder.ts';

/** One group's webhook, with its URL at each node. */
export interface PostTarget {
  readonly id: number;
  readonly webhooks: readonly string[];
}

export interface LoadOptions {
  /** The number of callers. Each posts its next message when the server has answered the last one with 200. */
  readonly clients: number;
  /** Pause of each caller after an answer. */
  readonly gapMs: number;
  /** The time for which a caller waits for an answer; 3 s by default. */
  readonly answerTimeoutMs?: number;
  /** A post that no server accepts within this time fails the run. */
  readonly giveUpMs?: number;
}

const ANSWER_TIMEOUT_MS = 3_000;
/** The text of a 503 whose post may have been written. */
const UNKNOWN_OUTCOME = /may have been posted/;
const REPEAT_MS = 20;
const GIVE_UP_MS = 240_000;

/**
 * Callers that post without a pause, through every fault. Each repeats a post with its Idempotency-Key until the server
 * answers 200, at another node if there is one.
 */
export class Load {
  /** The `seq` of each answer, by group and then by the number of the post. */
  readonly acknowledged: Map<number, number>[];
  /** Posts that the server answered with 200. */
  posted = 0;
  /** Attempts that the server did not answer with 200. */
  refused = 0;
  /** Of the refused attempts, those that the server answered with 503. */
  unavailable = 0;
  /** Of the attempts that the server answered with 503, those whose post it may have written. */
  unknownOutcomes = 0;
  /** The time at which the newest of the attempts that were answered with 200 was sent. */
  lastTakenSentAt = 0;
  readonly #targets: readonly PostTarget[];
  readonly #clientCount: number;
  readonly #answerTimeoutMs: number;
  readonly #giveUpMs: number;
  #gapMs: number;
  /** Since `watchPauses`: the longest time without an answer 200, and the time of the last such answer. */
  #longestPauseMs = 0;
  #lastTakenAt = 0;
  readonly #newest: number[];
  #next = 0;
  #stopped = true;
  #aborted = false;
  /** Callers begin no post before this promise resolves; null: the load is not paused. */
  #resumed: PromiseWithResolvers<void> | null = null;
  #clients: Promise<void> = Promise.resolve();

  constructor(targets: readonly PostTarget[], options: LoadOptions) {
    this.#targets = targets;
    this.#clientCount = options.clients;
    this.#gapMs = options.gapMs;
    this.#answerTimeoutMs = options.answerTimeoutMs ?? ANSWER_TIMEOUT_MS;
    this.#giveUpMs = options.giveUpMs ?? GIVE_UP_MS;
    this.acknowledged = targets.map(() => new Map());
    this.#newest = targets.map(() => 0);
  }

  start(): void {
    this.#stopped = false;
    this.#clients = Promise.all(Array.from({ length: this.#clientCount }, () => this.#run())).then(() => {});
    // `stop` awaits it; until then its rejection must not end the process.
    this.#clients.catch(() => {});
  }

  /** From here on each caller pauses for this time after an answer. */
  pace(gapMs: number): void {
    this.#gapMs = gapMs;
  }

  /** Callers finish the current post, and begin none before `resume`. */
  pause(): void {
    this.#resumed ??= Promise.withResolvers();
  }

  resume(): void {
    this.#resumed?.resolve();
    this.#resumed = null;
  }

  /** Resolves when the server has answered every started post with 200. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.resume();
    await this.#clients;
  }

  /** Ends the callers without waiting for answers. */
  async abort(): Promise<void> {
    this.#aborted = true;
    await this.stop().catch(() => {});
  }

  /** Starts to measure `longestPauseMs`. */
  watchPauses(): void {
    this.#longestPauseMs = 0;
    this.#lastTakenAt = performance.now();
  }

  /** The longest time without an answer 200 since `watchPauses`, the current one included. */
  get longestPauseMs(): number {
    return Math.max(this.#longestPauseMs, performance.now() - this.#lastTakenAt);
  }

  /**
   * The number of posts that have begun. Posts are numbered from 0, so each later one has this number or a greater one.
   */
  get begun(): number {
    return this.#next;
  }

  /** The newest acknowledged `seq` of each group. */
  heads(): number[] {
    return [...this.#newest];
  }

  async #run(): Promise<void> {
    // oxlint-disable-next-line no-unmodified-loop-condition -- `stop` does.
    while (!this.#stopped) {
      await this.#post(this.#next++);
      await this.#resumed?.promise;
      if (this.#gapMs > 0) await wait(this.#gapMs);
    }
  }

  async #post(post: number): Promise<void> {
    const group = post % this.#targets.length;
    const target = this.#targets[group]!;
    const started = performance.now();
    for (let attempt = 0; !this.#aborted; attempt += 1) {
      const sentAt = performance.now();
      const seq = await this.#ask(target.webhooks[(post + attempt) % target.webhooks.length]!, post);
      if (seq !== null) {
        this.lastTakenSentAt = Math.max(this.lastTakenSentAt, sentAt);
        this.acknowledged[group]!.set(post, seq);
        this.#newest[group] = Math.max(this.#newest[group]!, seq);
        this.posted += 1;
        this.#longestPauseMs = this.longestPauseMs;
        this.#lastTakenAt = performance.now();
        return;
      }
      this.refused += 1;
      const limitMs = this.#giveUpMs;
      if (performance.now() - started > limitMs) throw new Error(`a post was not taken within ${limitMs} ms`);
      await wait(REPEAT_MS);
    }
  }

  /** The message's `seq`, or null when the caller has to repeat the post. */
  async #ask(url: string, post: number): Promise<number | null> {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': `post-${post}` },
        body: JSON.stringify({ text: textOf(post) }),
        signal: AbortSignal.timeout(this.#answerTimeoutMs),
      });
      const text = await response.text();
      if (response.status === 200) {
        // The id may end in a dot and the log epoch, which `parseInt` ignores.
        return Number.parseInt((JSON.parse(text) as { id: string }).id.split(':')[1]!, 10);
      }
      if (response.status === 503) {
        this.unavailable += 1;
        if (UNKNOWN_OUTCOME.test(text)) this.unknownOutcomes += 1;
        return null;
      }
      throw new UnexpectedAnswerError(`a post was answered ${response.status}`);
    } catch (error) {
      if (error instanceof UnexpectedAnswerError) throw error;
      return null;
    }
  }
}

/** A caller got an answer other than 200 and 503, the only ones that a fault may cause. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError';
}
