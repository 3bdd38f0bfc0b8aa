import { isatty } from 'node:tty';

/**
 * Ctrl-C reaches the whole process group, and npm hands its own copy on to its child as well: what comes this soon
 * after the first signal is the same request, not a second one.
 */
const SAME_REQUEST_MS = 1_000;
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * The signals that ask a process to stop: the first one nicely, a later one at once. The loss of the terminal (SIGHUP)
 * asks too, unless nothing of the process is at a terminal, as behind nohup: Node forgets at its start that nohup has
 * the signal ignored.
 */
export class StopSignals {
  /** Resolves with the first signal. */
  readonly asked: Promise<NodeJS.Signals>;
  readonly #onAgain: (signal: NodeJS.Signals) => void;
  #answer: (signal: NodeJS.Signals) => void = () => {};
  #firstAtMs: number | null = null;
  // Once the terminal has gone, nobody can tell any more that there was one.
  readonly #hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));

  /** `onAgain` is called for every request after the first. */
  constructor(onAgain: (signal: NodeJS.Signals) => void) {
    this.#onAgain = onAgain;
    this.asked = new Promise((resolve) => {
      this.#answer = resolve;
    });
  }

  start(): void {
    for (const signal of SIGNALS) process.on(signal, this.#take);
    process.on('SIGHUP', this.#hangUp);
  }

  /** From now on signals do what they do by default. */
  stop(): void {
    for (const signal of SIGNALS) process.off(signal, this.#take);
    process.off('SIGHUP', this.#hangUp);
  }

  readonly #hangUp = (signal: NodeJS.Signals): void => {
    if (this.#hasTerminal) this.#take(signal);
  };

  readonly #take = (signal: NodeJS.Signals): void => {
    const nowMs = performance.now();
    if (this.#firstAtMs === null) {
      this.#firstAtMs = nowMs;
      this.#answer(signal);
    } else if (nowMs - this.#firstAtMs > SAME_REQUEST_MS) {
      this.#onAgain(signal);
    }
  };
}
