/**
 * Runs one benchmark for a program that controls it: `node bench/session.ts intake`. It prints a line of JSON when its
 * server is ready. On standard input, the line `prepare` prepares a round and the line `round` runs one; each is
 * answered by a line of JSON. The benchmark stops at the end of standard input. `make bench BASE=…` compares two trees
 * in this way, each with its own copy of this file.
 */
import { createInterface } from 'node:readline';
import { openFanOut } from './fan-out.ts';
import { openForward } from './forward.ts';
import { openIntake } from './intake.ts';
import { packagedOptions } from './support/packaged-options.ts';
import { openPush } from './push.ts';
import type { BenchSession } from './bench-session.ts';

const sessions: Readonly<Record<string, () => Promise<BenchSession>>> = {
  intake: openIntake,
  forward: openForward,
  'fan-out': openFanOut,
  push: openPush,
};

const name = process.argv[2] ?? '';
const open = sessions[name];
if (open === undefined) {
  console.error(`there is no session of ${name}; there are ${Object.keys(sessions).join(', ')}`);
  process.exit(64);
}
process.env['NODE_OPTIONS'] = packagedOptions();
const session = await open();
try {
  answer({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'prepare') {
      await session.prepare();
      answer({ prepared: true });
    } else if (line === 'round') answer(await session.round());
  }
} finally {
  await session.stop();
}

function answer(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
