import { setTimeout as wait } from 'node:timers/promises';
import { textOf } from './recorder.ts';

/** The webhook of one group, with its URL at each node. */
export interface PostTarget {
  readonly id: number;
  readonly webhooks: readonly string[];
}

export interface LoadOptions {
  /** The number of callers. Each posts its next message after the server has answered the last one with 200. */
  readonly clients: number;
  /** Pause of each caller after an answer. */
  readonly gapMs: number;
  /** The time for which a caller waits for an answer; 3 s by default. */
  readonly answerTimeoutMs?: number;
  /** A post that no server accepts within this time fails the run. */
  readonly giveUpMs?: number;
}

const ANSWER_TIMEOUT_MS = 3_000;
/** A 503 with this text says that the post may have been written. */
const UNKNOWN_OUTCOME = /may have been posted/;
const REPEAT_MS = 20;
const GIVE_UP_MS = 240_000;

/**
 * Callers that keep posting through every fault. Each repeats a post with its Idempotency-Key until the server answers
 * 200, at another node if there is one.
 */
export class Load {
  /** By group, then by the number of the post: the `seq` in the answer 200. */
  readonly acknowledged: Map<number, number>[];
  /** The number of posts that the server answered with 200. */
  posted = 0;
  /** The number of attempts that the server did not answer with 200. */
  refused = 0;
  /** The number of refused attempts that the server answered with 503. */
  unavailable = 0;
  /** The number of answers 503 to attempts whose post the server may have written. */
  unknownOutcomes = 0;
  /** The latest time of sending of an attempt that was answered with 200 (`performance.now()`). */
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
  /** Callers begin no post before this promise resolves; null: the callers are not paused. */
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
    // `stop` awaits this promise. Until then its rejection must not end the process.
    this.#clients.catch(() => {});
  }

  /** From now on each caller pauses for this time after an answer. */
  pace(gapMs: number): void {
    this.#gapMs = gapMs;
  }

  /** Pauses the callers: they finish their current posts, and begin none before `resume`. */
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

  /** The longest time without an answer 200 since `watchPauses`. A pause that still lasts counts too. */
  get longestPauseMs(): number {
    return Math.max(this.#longestPauseMs, performance.now() - this.#lastTakenAt);
  }

  /** The number of posts that have begun. Posts are numbered from 0, so each later post has at least this number. */
  get begun(): number {
    return this.#next;
  }

  /** The greatest acknowledged `seq` of each group. */
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

  /** Sends the post once. Resolves to the `seq` of the message, or to null when the caller has to repeat the post. */
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
        // After the `seq` the id may have a dot and the log epoch, which `parseInt` ignores.
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

/** A caller got an answer other than 200 and 503: a fault may cause no other. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError';
}
