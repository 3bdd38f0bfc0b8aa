/** What a loop does. */
export interface LoopParts {
  /** One turn; resolves with the ms after which the next one begins, if nobody wakes it before. */
  readonly turn: () => Promise<number>;
  /** Asked before each turn. */
  readonly isOver: () => boolean;
  readonly onFailure: (error: unknown) => void;
  /** After a failure it rests so long, whoever wakes it. */
  readonly restMs: number;
}

/** Does something again and again: when it is woken, and after a while. What fails is tried again. */
export class Loop {
  readonly #parts: LoopParts;
  #isWoken = false;
  #wake: (isEnd: boolean) => void = () => {};

  constructor(parts: LoopParts) {
    this.#parts = parts;
  }

  /** Resolves when it is over. Rejects never. */
  async run(): Promise<void> {
    const { turn, isOver, onFailure, restMs } = this.#parts;
    while (!isOver()) {
      this.#isWoken = false;
      try {
        const waitMs = await turn();
        if (!this.#isWoken && !isOver()) await this.#rest(waitMs, true);
      } catch (error) {
        onFailure(error);
        if (!isOver()) await this.#rest(restMs, false);
      }
    }
  }

  /** There is something to do. */
  wake(): void {
    this.#isWoken = true;
    this.#wake(false);
  }

  /** It may be over: it looks at once, even where it rests after a failure. */
  check(): void {
    this.#isWoken = true;
    this.#wake(true);
  }

  async #rest(ms: number, wakes: boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = (isEnd) => {
        if (!wakes && !isEnd) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = () => {};
  }
}
