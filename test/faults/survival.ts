import { expect, test } from '@jest/globals';
import { hangLimitMs, runFault, type Fault } from '../../faults/fault.ts';

/**
 * Pause of each caller after an answer. Together the callers post at most 270 times a second; the 800 of `make faults`
 * cost 40 % more CPU time.
 */
const GAP_MS = 30;

/**
 * Runs each fault as a test, in its short form; `make faults` runs the same faults at full length. If this machine
 * lacks a prerequisite (a library, root), the test is skipped, with the reason.
 */
export async function testSurvival(faults: readonly Fault[]): Promise<void> {
  for (const fault of faults) {
    const lack = (await fault.lacks?.()) ?? null;
    const runs = fault.runs.test;
    const run = lack === null ? test : test.skip;
    if (lack !== null) process.stderr.write(`not run: ${fault.title}. ${lack}\n`);
    run(
      `loses nothing, keeps the order and repeats no more than it may: ${fault.title}`,
      async () => {
        const result = await runFault(fault, runs, { gapMs: GAP_MS, toleratesPrecautions: true });
        expect(result).toMatchObject({ runs, notRun: null, lost: 0, outOfOrder: 0, violations: [] });
        expect(result.messages).toBeGreaterThan(0);
        expect(result.recoveries).toHaveLength(runs);
      },
      hangLimitMs(fault, runs),
    );
  }
}
