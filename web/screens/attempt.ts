import { useSignal } from '@preact/signals';

/** Runs the actions of a part of a dialog one at a time, and keeps the reason why the last one failed. */
interface Attempt {
  readonly problem: string | null;
  readonly isBusy: boolean;
  /** Resolves to whether it succeeded. */
  readonly run: (work: () => Promise<void>) => Promise<boolean>;
}

export function useAttempt(): Attempt {
  const problem = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const run = async (work: () => Promise<void>): Promise<boolean> => {
    isBusy.value = true;
    try {
      await work();
      problem.value = null;
      return true;
    } catch (error) {
      problem.value = (error as Error).message;
      return false;
    } finally {
      isBusy.value = false;
    }
  };
  return { problem: problem.value, isBusy: isBusy.value, run };
}
