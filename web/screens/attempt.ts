import { useSignal } from '@preact/signals';

/** Runs the actions of a part of a dialog one at a time, and stores why the last action failed. */
interface Attempt {
  readonly problem: string | null;
  readonly isBusy: boolean;
  /** Resolves to whether the action succeeded. */
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
