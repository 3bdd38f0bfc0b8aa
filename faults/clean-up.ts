/** The run was ended, from outside or since its time was over: nothing new may be opened. */
export class EndedError extends Error {
  override readonly name = 'EndedError';
}

interface Step {
  readonly name: string;
  readonly undo: () => Promise<void> | void;
}

/** No step of cleaning up may take longer. */
const STEP_MS = 240_000;

/** What was opened and has to be closed again, in the opposite order, also after a failure and on Ctrl-C. */
export class CleanUp {
  #steps: Step[] = [];
  #cleanup: Promise<string[]> | null = null;

  /** Remembers how to undo what was just done. After the end it is undone at once, and this rejects. */
  async add(name: string, undo: Step['undo']): Promise<void> {
    this.#steps.push({ name, undo });
    if (this.#cleanup === null) return;
    await this.#undo();
    throw new EndedError('the run has ended');
  }

  /**
   * Undoes everything, and lets nothing be opened any more; one failure does not stop the rest. Resolves with what could
   * not be undone, in words. Idempotent.
   */
  end(): Promise<string[]> {
    this.#cleanup ??= this.#undo();
    return this.#cleanup;
  }

  async #undo(): Promise<string[]> {
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
