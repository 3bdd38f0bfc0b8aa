import { setTimeout as wait } from 'node:timers/promises';

const REPEAT_MS = 20;
const ANSWER_TIMEOUT_MS = 3_000;

/** A caller that repeats each of its requests until it is answered 200. */
export class RepeatingCaller {
  /** Answers that are neither 200 nor 503, in words. */
  readonly violations = new Set<string>();
  readonly #name: string;
  #isAborted = false;

  constructor(name: string) {
    this.#name = name;
  }

  /** What is not answered yet is given up. */
  abort(): void {
    this.#isAborted = true;
  }

  /** False when it was given up. `headers` have a key by which the server knows a repeat, or `body` has it. */
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
