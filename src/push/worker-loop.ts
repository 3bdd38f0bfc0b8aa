interface WorkerLoopOptions {
  /** Runs one turn. Resolves to the milliseconds until the next turn, unless `wake` is called before. */
  readonly stepReturningDelayMs: () => Promise<number>;
  /** Called before each turn. True: the loop ends. */
  readonly isDone: () => boolean;
  readonly onFailure: (error: unknown) => void;
  /** The pause after a failure, which `wake` does not shorten. */
  readonly failureRetryDelayMs: number;
}

/**
 * Runs a step repeatedly: when `wake` is called, and after the delay that the step returned. A failed step is retried.
 */
export class WorkerLoop {
  readonly #options: WorkerLoopOptions;
  #isWoken = false;
  #wake: (isDoneRecheck: boolean) => void = () => {};

  constructor(options: WorkerLoopOptions) {
    this.#options = options;
  }

  /** Resolves when the loop has ended. Never rejects. */
  async run(): Promise<void> {
    const { stepReturningDelayMs, isDone, onFailure, failureRetryDelayMs } = this.#options;
    while (!isDone()) {
      this.#isWoken = false;
      try {
        const waitMs = await stepReturningDelayMs();
        if (!this.#isWoken && !isDone()) await this.#pause(waitMs, true);
      } catch (error) {
        onFailure(error);
        if (!isDone()) await this.#pause(failureRetryDelayMs, false);
      }
    }
  }

  /** Starts the next turn at once, or right after the current one. Does not shorten the pause after a failure. */
  wake(): void {
    this.#isWoken = true;
    this.#wake(false);
  }

  /** Makes the loop check `isDone` at once, even during the pause after a failure. */
  wakeToRecheckDone(): void {
    this.#isWoken = true;
    this.#wake(true);
  }

  async #pause(ms: number, isWakeable: boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = (isDoneRecheck) => {
        if (!isWakeable && !isDoneRecheck) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = () => {};
  }
}
