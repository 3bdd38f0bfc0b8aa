import { setTimeout as wait } from 'node:timers/promises';

const REPEAT_MS = 20;
const ANSWER_TIMEOUT_MS = 3_000;

/** A caller that repeats each request until the server answers 200. */
export class RepeatingCaller {
  /** The answers other than 200 and 503, in words. */
  readonly violations = new Set<string>();
  readonly #name: string;
  #isAborted = false;

  constructor(name: string) {
    this.#name = name;
  }

  /** Stops repeating: every `post` that is unanswered returns false. */
  abort(): void {
    this.#isAborted = true;
  }

  /**
   * Returns true after the answer 200, and false after `abort`. `headers` or `body` contain the key by which the server
   * recognises a repeat.
   */
  async post(url: string, { body, headers }: { body: object; headers?: Record<string, string> }): Promise<boolean> {
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    };
    while (!this.#isAborted) {
      const status = await fetch(url, { ...request, signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) }).then(
        async (answer) => {
          await answer.arrayBuffer();
          return answer.status;
        },
        () => null,
      );
      if (status === 200) return true;
      if (status !== null && status !== 503) this.violations.add(`${this.#name} was answered ${status}`);
      await wait(REPEAT_MS);
    }
    return false;
  }
}
