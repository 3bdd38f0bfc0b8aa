import { expect, test } from '@jest/globals';
import { WorkerLoop } from '../../src/push/worker-loop.ts';

/** Starts a worker loop. The test gives the results of its turns one by one, and ends it. */
function stage(failureRetryDelayMs: number) {
  const turns: PromiseWithResolvers<number>[] = [];
  const waiting: (() => void)[] = [];
  const failures: unknown[] = [];
  let isDone = false;
  const loop = new WorkerLoop({
    stepReturningDelayMs: () => {
      const step = Promise.withResolvers<number>();
      turns.push(step);
      waiting.splice(0).forEach((go) => go());
      return step.promise;
    },
    isDone: () => isDone,
    onFailure: (error) => failures.push(error),
    failureRetryDelayMs,
  });
  const running = loop.run();
  return {
    loop,
    turns,
    failures,
    /** Resolves when the nth turn has begun. */
    begun: async (n: number) => {
      while (turns.length < n) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    end: () => {
      isDone = true;
      loop.wakeToRecheckDone();
      return running;
    },
  };
}

const LONG_MS = 600_000;

test('begins the next turn when it is woken, also by what came in the middle of one', async () => {
  const { loop, turns, begun, end } = stage(LONG_MS);
  await begun(1);
  loop.wake();
  turns[0]!.resolve(LONG_MS);
  await begun(2);
  turns[1]!.resolve(LONG_MS);
  await new Promise(setImmediate);
  expect(turns).toHaveLength(2);
  loop.wake();
  await begun(3);
  turns[2]!.resolve(LONG_MS);
  await end();
});

test('begins the next turn after the time that a turn has said', async () => {
  const { turns, begun, end } = stage(LONG_MS);
  await begun(1);
  turns[0]!.resolve(5);
  await begun(2);
  turns[1]!.resolve(LONG_MS);
  await end();
});

test('rests after a failure whoever wakes it, and ends all the same when it is over', async () => {
  const { loop, turns, failures, begun, end } = stage(LONG_MS);
  await begun(1);
  turns[0]!.reject(new Error('away'));
  await new Promise(setImmediate);
  loop.wake();
  await new Promise(setImmediate);
  expect(turns).toHaveLength(1);
  expect(failures).toEqual([new Error('away')]);
  await end();
});

test('tries again when its rest is over', async () => {
  const { turns, begun, end } = stage(5);
  await begun(1);
  turns[0]!.reject(new Error('away'));
  await begun(2);
  turns[1]!.resolve(LONG_MS);
  await end();
});
