import { describe, expect, test } from '@jest/globals';
import { CleanUp, EndedError } from '../../faults/clean-up.ts';
import { runFault, type Fault } from '../../faults/fault.ts';

const fault: Fault = {
  name: 'none',
  title: 'no fault',
  runs: { full: 1, quick: 1, test: 1 },
  runMs: 1_000,
  repeatsPerLane: 0,
  open: () => Promise.reject(new Error('it could not be set up')),
};

describe('cleaning up after a fault', () => {
  test('undoes everything in the opposite order, past what fails', async () => {
    const done: string[] = [];
    const cleanUp = new CleanUp();
    await cleanUp.add('first', () => void done.push('first'));
    await cleanUp.add('broken', () => Promise.reject(new Error('it is stuck')));
    await cleanUp.add('last', () => void done.push('last'));
    expect(await cleanUp.end()).toEqual(['broken: it is stuck']);
    expect(done).toEqual(['last', 'first']);
  });

  test('undoes at once what is opened after the end', async () => {
    const done: string[] = [];
    const cleanUp = new CleanUp();
    await cleanUp.end();
    await expect(cleanUp.add('late', () => void done.push('late'))).rejects.toThrow(EndedError);
    expect(done).toEqual(['late']);
  });

  test('is part of every run, also of one that fails, and a failure is a row that does not stand', async () => {
    const done: string[] = [];
    const cleanUp = new CleanUp();
    await cleanUp.add('server', () => void done.push('server'));
    const { violations, runs } = await runFault(fault, 1, { cleanUp });
    expect({ violations, runs, done }).toEqual({ violations: ['it could not be set up'], runs: 0, done: ['server'] });
  });

  test('ends a run that takes too long', async () => {
    const endless = { ...fault, open: () => new Promise<never>(() => {}) };
    const { violations } = await runFault(endless, 1, { limitMs: 20 });
    expect(violations).toEqual(['not done within 20 ms']);
  });

  test('a fault that this machine cannot be struck with is a row that says why', async () => {
    const lacking = { ...fault, lacks: () => Promise.resolve('faketime is not installed: apt-get install faketime') };
    const { notRun, runs, violations } = await runFault(lacking, 1);
    expect({ notRun, runs, violations }).toEqual({
      notRun: 'faketime is not installed: apt-get install faketime',
      runs: 0,
      violations: [],
    });
  });
});
