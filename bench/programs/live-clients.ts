/**
 * Many live clients in a process of their own. Arguments: transport, port, path, tokens, revs. `tokens` is a file with
 * a token in each line, or the number of clients without tokens. `revs` is missing, or the JSON of the revs to follow
 * from. The process answers each line on standard input with a line on standard output:
 * - `open` connects all clients (`open N`: N a second).
 * - `wait N` answers when N changes have arrived at all clients together.
 * - `mark` starts the search for marked messages (`mark-N`).
 * - `marks` answers how many clients each marked message reached, and when it reached the last one. It ends the search.
 * - `close` closes the connections.
 */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { machineMs } from '../support/clock.ts';
import { BenchClient, type Transport } from '../live/live-client.ts';

const [transport, port, path, people, follow] = process.argv.slice(2) as [Transport, string, string, string, string];
/** The number of connections that open at the same time: a server bounds the unauthenticated ones. */
const OPENING = 100;
const MARK = Buffer.from('"text":"mark-');
const DIGITS = 7;

const tokens: (string | null)[] = /^\d+$/.test(people)
  ? Array.from({ length: Number(people) }, () => null)
  : readFileSync(people, 'utf8').trim().split('\n');
let clients: BenchClient[] = [];
let arrived = 0;
let waiting: { count: number; done: () => void } | null = null;
/**
 * True while marked messages are searched for. The search costs as much as all other work, so it runs only on request.
 */
let isMarking = false;
const marks = new Map<string, { count: number; lastMs: number }>();

function onChange(bytes: Buffer, start: number, end: number): void {
  arrived += 1;
  if (isMarking) {
    const frame = bytes.subarray(start, end);
    const at = frame.indexOf(MARK);
    const name = at === -1 ? 'other' : frame.toString('latin1', at + MARK.length, at + MARK.length + DIGITS);
    const mark = marks.get(name) ?? { count: 0, lastMs: 0 };
    mark.count += 1;
    mark.lastMs = machineMs();
    marks.set(name, mark);
  }
  if (waiting !== null && arrived >= waiting.count) {
    waiting.done();
    waiting = null;
  }
}

async function openAll(perSecond: number): Promise<void> {
  const rest = [...tokens];
  const startedMs = machineMs();
  let begun = 0;
  const place = { transport, port: Number(port), path };
  const what = follow === undefined || follow === '' ? null : (JSON.parse(follow) as object);
  const open = async (): Promise<void> => {
    for (let token = rest.pop(); token !== undefined; token = rest.pop()) {
      const dueMs = startedMs + (begun * 1_000) / perSecond;
      begun += 1;
      if (dueMs > machineMs()) await wait(dueMs - machineMs());
      clients.push(await BenchClient.open(place, { token, follow: what }, onChange));
    }
  };
  await Promise.all(Array.from({ length: OPENING }, open));
}

console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  const [word, number] = line.split(' ');
  if (word === 'open') {
    await openAll(Number(number ?? Number.POSITIVE_INFINITY));
    console.log(clients.length);
  } else if (word === 'wait') {
    const count = Number(number);
    if (arrived < count) await new Promise<void>((done) => (waiting = { count, done }));
    console.log(arrived);
  } else if (word === 'count') console.log(arrived);
  else if (word === 'mark') {
    isMarking = true;
    console.log('marking');
  } else if (word === 'marks') {
    isMarking = false;
    console.log(JSON.stringify([...marks].map(([name, { count, lastMs }]) => [Number(name), count, lastMs])));
    marks.clear();
  } else if (word === 'close') {
    for (const client of clients) client.close();
    clients = [];
    arrived = 0;
    console.log('closed');
  }
}
