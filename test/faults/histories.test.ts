import { expect, test } from '@jest/globals';
import { CleanUp } from '../../faults/clean-up.ts';
import { playSeed, startEnvironment } from '../../faults/histories/run.ts';

const HISTORIES = 20;

test.each([
  ['kills, edits, redeliveries and retention', 1],
  ['restores of a backup as well', 2],
])('receivers that follow the documented rules end right after %s', async (_, seed) => {
  const cleanUp = new CleanUp();
  try {
    const result = await playSeed(await startEnvironment(cleanUp), seed);
    expect(result).toMatchObject({ histories: HISTORIES, violations: [] });
    expect(result.deliveries).toBeGreaterThan(HISTORIES);
  } finally {
    expect(await cleanUp.end()).toEqual([]);
  }
});
