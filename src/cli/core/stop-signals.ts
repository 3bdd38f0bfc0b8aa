import { isatty } from 'node:tty';

/**
 * Ctrl-C reaches the whole process group, and npm hands its own copy on to its child as well: what comes this soon
 * after the first signal is the same request, not a second one.
 */
const SAME_REQUEST_WINDOW_MS = 1_000;
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * The signals that ask a process to stop: the first one nicely, a later one at once. The loss of the terminal (SIGHUP)
 * asks too, unless nothing of the process is at a terminal, as behind nohup: Node forgets at its start that nohup has
 * the signal ignored.
 */
export class StopSignals {
  /** Resolves with the first signal. */
  readonly firstSignal: Promise<NodeJS.Signals>;
  readonly #onLaterStopRequest: (signal: NodeJS.Signals) => void;
  #resolveFirstSignal: (signal: NodeJS.Signals) => void = () => {};
  #firstSignalAtMs: number | null = null;
  // Once the terminal has gone, nobody can tell any more that there was one.
  readonly #hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));

  /** `onLaterStopRequest` is called for every request after the first. */
  constructor(onLaterStopRequest: (signal: NodeJS.Signals) => void) {
    this.#onLaterStopRequest = onLaterStopRequest;
    this.firstSignal = new Promise((resolve) => {
      this.#resolveFirstSignal = resolve;
    });
  }

  start(): void {
    for (const signal of SIGNALS) process.on(signal, this.#onSignal);
    process.on('SIGHUP', this.#onHangUp);
  }

  /** From now on signals do what they do by default. */
  stop(): void {
    for (const signal of SIGNALS) process.off(signal, this.#onSignal);
    process.off('SIGHUP', this.#onHangUp);
  }

  readonly #onHangUp = (signal: NodeJS.Signals): void => {
    if (this.#hasTerminal) this.#onSignal(signal);
  };

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    const nowMs = performance.now();
    if (this.#firstSignalAtMs === null) {
      this.#firstSignalAtMs = nowMs;
      this.#resolveFirstSignal(signal);
    } else if (nowMs - this.#firstSignalAtMs > SAME_REQUEST_WINDOW_MS) {
      this.#onLaterStopRequest(signal);
    }
  };
}
