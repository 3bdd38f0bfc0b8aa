import { isatty } from 'node:tty';

/**
 * A second signal within this time after the first is a copy of the same request, and is ignored. Ctrl-C sends SIGINT
 * to the whole process group, and npm also forwards it to its child.
 */
const SAME_REQUEST_WINDOW_MS = 1_000;
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Listens for the signals that ask the process to stop: the first asks for a graceful stop, a later one for a stop at
 * once. SIGHUP (the terminal was lost) counts only if a standard stream is a terminal. Under nohup none is: nohup
 * ignores SIGHUP, but Node restores its default action at the start.
 */
export class StopSignals {
  /** Resolves with the first signal. */
  readonly firstSignal: Promise<NodeJS.Signals>;
  readonly #onLaterStopRequest: (signal: NodeJS.Signals) => void;
  #resolveFirstSignal: (signal: NodeJS.Signals) => void = () => {};
  #firstSignalAtMs: number | null = null;
  // Determined at the start of the process: after the loss of the terminal, `isatty` returns false.
  readonly #hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));

  /** `onLaterStopRequest`: called for every stop request after the first one. */
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
