import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { rateOf } from '../../bench/compare/side.ts';
import { serverCpuSeconds } from '../../bench/support/cpu.ts';

test('the rate of a run is that of the last line of JSON of its benchmark', () => {
  const lines = [
    'intake: durable posts',
    '{"bench":"intake","rate":900}',
    '{"bench":"growth","rate":7}',
    '{"bench":"intake","ratio":0.8,"rate":1000}',
    'done',
  ];
  expect(rateOf(lines, 'intake')).toBe(1000);
  expect(rateOf(lines, 'forward')).toBeNull();
  expect(rateOf(['{"bench":"intake","rate":0}'], 'intake')).toBeNull();
});

const BURN_US = 200_000;
const BURN = `const used = () => { const { user, system } = process.cpuUsage(); return user + system; };
  const end = used() + ${BURN_US}; while (used() < end);`;

/** The CPU seconds that are counted below a process. The process and its child of this name have each used 200 ms. */
async function countBelow(name: string): Promise<number> {
  const child = `process.title = '${name}'; ${BURN} console.log('burned'); setInterval(() => {}, 1e6)`;
  const parent = `${BURN} require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(child)}], { stdio: 'inherit' });`;
  const started = spawn(process.execPath, ['-e', parent], { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  try {
    await once(started.stdout, 'data');
    return serverCpuSeconds(started.pid!);
  } finally {
    process.kill(-started.pid!, 'SIGKILL');
  }
}

test('CPU time is that of the servers below a process, not of the process itself', async () => {
  // The tolerance is two ticks: Linux counts CPU time in ticks of 10 ms.
  expect(await countBelow('klatch')).toBeGreaterThanOrEqual(BURN_US / 1e6 - 0.02);
  expect(await countBelow('driver')).toBe(0);
});
