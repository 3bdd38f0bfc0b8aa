import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that systems give to connections and to `listen(0)`, and beyond the last one that no browser and no
 * fetch() talks to (10080); so many for each of the tests' workers.
 */
const FIRST = 10_100;
const OF_A_WORKER = 5_000;
const WORKERS = 4;

const worker = Number(process.env['JEST_WORKER_ID'] ?? 0) % WORKERS;
let next = Math.floor(Math.random() * OF_A_WORKER);

/**
 * A port that was free a moment ago, and that nobody else is given by chance until it is used: a server that is to be
 * killed and started again needs the same one each time.
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
