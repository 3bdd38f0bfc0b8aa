import { isatty } from 'node:tty';

/**
 * Ctrl-C sends SIGINT to the whole process group, and npm also forwards it to its child. So a second signal within this
 * time belongs to the same request.
 */
const SAME_REQUEST_WINDOW_MS = 1_000;
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * The signals that ask a process to stop: the first one gracefully, a later one at once. SIGHUP, the loss of the
 * terminal, counts only if a standard stream is a terminal. Under nohup no stream is one: nohup ignores SIGHUP, but
 * Node restores its default action at the start.
 */
export class StopSignals {
  /** Resolves with the first signal. */
  readonly firstSignal: Promise<NodeJS.Signals>;
  readonly #onLaterStopRequest: (signal: NodeJS.Signals) => void;
  #resolveFirstSignal: (signal: NodeJS.Signals) => void = () => {};
  #firstSignalAtMs: number | null = null;
  // Determined at the start: after the loss of the terminal, `isatty` no longer shows that there was one.
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

  /** Restores the default actions of the signals. */
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
