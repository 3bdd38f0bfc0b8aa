/** The run was ended from outside: nothing new may be opened. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}

interface Step {
  readonly name: string;
  readonly undo: () => Promise<void> | void;
}

/** No step of cleaning up may take longer. */
const STEP_MS = 40_000;

/** What was opened and has to be closed again, in the opposite order, also after a failure and on Ctrl-C. */
export class CleanUp {
  #steps: Step[] = [];
  #interrupted = false;

  /** True once `interrupt` was called. */
  get interrupted(): boolean {
    return this.#interrupted;
  }

  /** Remembers how to undo what was just done. After an interruption it is undone at once, and this rejects. */
  async add(name: string, undo: Step['undo']): Promise<void> {
    this.#steps.push({ name, undo });
    if (!this.#interrupted) return;
    await this.run();
    throw new InterruptedError('the run was interrupted');
  }

  /** Undoes everything; one failure does not stop the rest. Resolves with what could not be undone, in words. */
  async run(): Promise<string[]> {
    const problems: string[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await within(STEP_MS, step.undo());
      } catch (error) {
        problems.push(`${step.name}: ${(error as Error).message}`);
      }
    }
    return problems;
  }

  /** Undoes everything and lets nothing be opened any more. */
  interrupt(): Promise<string[]> {
    this.#interrupted = true;
    return this.run();
  }
}

/** Rejects when `work` takes longer than `ms`. */
export async function within<T>(ms: number, work: Promise<T> | T): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`not done within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
