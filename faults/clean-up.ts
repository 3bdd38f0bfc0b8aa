/** Thrown when something is opened after the run has ended, by a signal or by its time limit. */
export class EndedError extends Error {
  override readonly name = 'EndedError';
}

interface Step {
  readonly name: string;
  readonly undo: () => Promise<void> | void;
}

/** Time limit of one clean-up step. */
const STEP_MS = 240_000;

/** Closes everything that a run opened, in reverse order, also after a failure and on Ctrl-C. */
export class CleanUp {
  #steps: Step[] = [];
  #cleanup: Promise<string[]> | null = null;

  /** Records how to undo an action that has just succeeded. After `end` it undoes the action at once and rejects. */
  async add(name: string, undo: Step['undo']): Promise<void> {
    this.#steps.push({ name, undo });
    if (this.#cleanup === null) return;
    await this.#undo();
    throw new EndedError('the run has ended');
  }

  /**
   * Undoes everything; later additions reject. A failure does not stop the other steps. Resolves with the failures, in
   * words. Idempotent.
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
