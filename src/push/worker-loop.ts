/** What a loop does. */
interface WorkerLoopOptions {
  /** One turn; resolves with the ms after which the next one begins, if nobody wakes it before. */
  readonly stepReturningDelayMs: () => Promise<number>;
  /** Asked before each turn. */
  readonly isDone: () => boolean;
  readonly onFailure: (error: unknown) => void;
  /** After a failure it rests so long, whoever wakes it. */
  readonly failureRetryDelayMs: number;
}

/** Does something again and again: when it is woken, and after a while. What fails is tried again. */
export class WorkerLoop {
  readonly #options: WorkerLoopOptions;
  #isWoken = false;
  #wake: (isEnd: boolean) => void = () => {};

  constructor(options: WorkerLoopOptions) {
    this.#options = options;
  }

  /** Resolves when it is over. Rejects never. */
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

  /** There is something to do. */
  wake(): void {
    this.#isWoken = true;
    this.#wake(false);
  }

  /** It may be over: it looks at once, even where it rests after a failure. */
  wakeToRecheckDone(): void {
    this.#isWoken = true;
    this.#wake(true);
  }

  async #pause(ms: number, isWakeable: boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = (isEnd) => {
        if (!isWakeable && !isEnd) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = () => {};
  }
}
