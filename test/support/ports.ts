import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Ports that tests use begin here: below those that systems assign to connections and to `listen(0)`, and above 10080,
 * the last port that browsers and fetch() block. Each worker of the tests has `OF_A_WORKER` ports.
 */
const FIRST = 10_100;
const OF_A_WORKER = 5_000;
const WORKERS = 4;

const worker = Number(process.env['JEST_WORKER_ID'] ?? 0) % WORKERS;
let next = Math.floor(Math.random() * OF_A_WORKER);

/**
 * A port that was free a moment ago, and that no other process gets by chance until its use. A server that the test
 * kills and restarts needs the same port each time.
 */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < OF_A_WORKER; tried += 1) {
    next = (next + 1) % OF_A_WORKER;
    const port = FIRST + worker * OF_A_WORKER + next;
    if (await isFree(port)) return port;
  }
  throw new Error('no port is free');
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  const free = Promise.withResolvers<boolean>();
  probe.once('error', () => free.resolve(false));
  probe.listen(port, '127.0.0.1', () => free.resolve(true));
  if (!(await free.promise)) return false;
  probe.close();
  await once(probe, 'close');
  return true;
}
