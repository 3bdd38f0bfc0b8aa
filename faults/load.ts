import { setTimeout as wait } from 'node:timers/promises';
import { textOf } from './recorder.ts';

/** Where the posts of one group go: the same integration at every node. */
export interface PostTarget {
  readonly id: number;
  readonly webhooks: readonly string[];
}

export interface LoadOptions {
  /** Callers, each of which posts its next message when the last one was answered 200. */
  readonly clients: number;
  /** Rest of each caller after an answer. */
  readonly gapMs: number;
}

const POST_TIMEOUT_MS = 3_000;
const REPEAT_MS = 20;
/** A server that takes no post for this long has not survived. */
const GIVE_UP_MS = 240_000;

/**
 * Clients that post without a pause, through every fault: each repeats a post with its Idempotency-Key until it is
 * answered 200, at another node if there is one.
 */
export class Load {
  /** By group, then by the number of the post: the `seq` that the answer named. */
  readonly acknowledged: Map<number, number>[];
  /** Posts that were answered 200. */
  posted = 0;
  /** Attempts to post that were not answered 200. */
  refused = 0;
  readonly #targets: readonly PostTarget[];
  readonly #clientCount: number;
  #gapMs: number;
  readonly #newest: number[];
  #next = 0;
  #stopped = true;
  #aborted = false;
  #clients: Promise<void> = Promise.resolve();

  constructor(targets: readonly PostTarget[], { clients, gapMs }: LoadOptions) {
    this.#targets = targets;
    this.#clientCount = clients;
    this.#gapMs = gapMs;
    this.acknowledged = targets.map(() => new Map());
    this.#newest = targets.map(() => 0);
  }

  start(): void {
    this.#stopped = false;
    this.#clients = Promise.all(Array.from({ length: this.#clientCount }, () => this.#run())).then(() => {});
    // It is looked at in `stop`, and must not end the process before.
    this.#clients.catch(() => {});
  }

  /** From here on each caller rests so long after an answer. */
  pace(gapMs: number): void {
    this.#gapMs = gapMs;
  }

  /** Resolves when every post that was begun has been answered 200. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#clients;
  }

  /** Ends without waiting for answers. */
  async abort(): Promise<void> {
    this.#aborted = true;
    await this.stop().catch(() => {});
  }

  /** The newest `seq` of each group that was answered so far. */
  heads(): number[] {
    return [...this.#newest];
  }

  async #run(): Promise<void> {
    // oxlint-disable-next-line no-unmodified-loop-condition -- `stop` does.
    while (!this.#stopped) {
      await this.#post(this.#next++);
      if (this.#gapMs > 0) await wait(this.#gapMs);
    }
  }

  async #post(post: number): Promise<void> {
    const group = post % this.#targets.length;
    const target = this.#targets[group]!;
    const started = performance.now();
    for (let attempt = 0; !this.#aborted; attempt += 1) {
      const seq = await this.#ask(target.webhooks[(post + attempt) % target.webhooks.length]!, post);
      if (seq !== null) {
        this.acknowledged[group]!.set(post, seq);
        this.#newest[group] = Math.max(this.#newest[group]!, seq);
        this.posted += 1;
        return;
      }
      this.refused += 1;
      if (performance.now() - started > GIVE_UP_MS) throw new Error(`a post was not taken within ${GIVE_UP_MS} ms`);
      await wait(REPEAT_MS);
    }
  }

  /** The message's `seq`, or null when the post has to be repeated. */
  async #ask(url: string, post: number): Promise<number | null> {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': `post-${post}` },
        body: JSON.stringify({ text: textOf(post) }),
        signal: AbortSignal.timeout(POST_TIMEOUT_MS),
      });
      const text = await response.text();
      if (response.status === 200) return Number((JSON.parse(text) as { id: string }).id.split(':')[1]);
      if (response.status === 503) return null;
      throw new UnexpectedAnswerError(`a post was answered ${response.status}`);
    } catch (error) {
      if (error instanceof UnexpectedAnswerError) throw error;
      return null;
    }
  }
}

/** Neither taken nor 503: no fault may show itself to callers in another way. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError';
}
