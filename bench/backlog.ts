import { setTimeout as wait } from 'node:timers/promises';
import { postJson } from '../test/support/server.ts';
import { ServerProcess } from '../test/support/server-process.ts';
import { residentMiB } from './support/cpu.ts';
import { fillLog } from './seed-data.ts';
import { SETTINGS } from './intake.ts';
import { postMessages } from './load.ts';
import { BenchProcess } from './process.ts';
import { report, round } from './support/report.ts';

const MESSAGES = 1_000_000;
const BATCH = 50;
/** The number of equal parts of the backlog. Each part is a line of the table. */
const PARTS = 10;
const SAMPLE_MS = 50;
/**
 * The wait before each reading of the memory at rest. By its end the first full sweep (search for hooks with work) has
 * completed, and the memory is steady.
 */
const SETTLED_MS = 6_000;
/**
 * The second half of the backlog may exceed the first half's peak of memory by this much. The first tenths already take
 * the memory that delivery itself needs: the reader's cache, and garbage until V8 collects it. A server that kept the
 * backlog, or a part of each delivery, would grow further: the bodies have 300 MiB.
 */
const GROWTH_TARGET_MIB = 32;

/** The measurements of one tenth of the backlog. */
interface Part {
  readonly rate: number;
  readonly bareRate: number;
  readonly perRequest: number;
  readonly misplaced: number;
  readonly peakMiB: number;
}

interface Memory {
  readonly before: number;
  readonly peak: number;
  readonly after: number;
}

/** The size of the backlog; smaller ones (`make bench ONLY=backlog MESSAGES=20000 BATCH=1`) are for trials. */
export interface BacklogSize {
  readonly messages: number;
  readonly batch: number;
}

/** The size of the backlog from the environment; by default the size for which the target is set. */
export function backlogSize(env: NodeJS.ProcessEnv): BacklogSize {
  const size = { messages: Number(env['MESSAGES'] ?? MESSAGES), batch: Number(env['BATCH'] ?? BATCH) };
  const isRight = size.messages >= PARTS && size.batch >= 1 && size.batch <= 100;
  if (!isRight) throw new Error(`MESSAGES is ${PARTS} or more, BATCH 1 to 100`);
  return size;
}

/**
 * Measures how fast a server delivers a million messages that wait for one hook. The baseline is a bare loop that sends
 * as many messages, in bodies of the same size.
 */
export async function benchBacklog(size = backlogSize(process.env)): Promise<boolean> {
  const server = await ServerProcess.create(SETTINGS);
  const stops: (() => Promise<void>)[] = [() => server.remove()];
  try {
    const sink = await BenchProcess.start('programs/message-sink.ts');
    stops.unshift(() => sink.process.stop());
    const bareSink = await BenchProcess.start('programs/message-sink.ts');
    stops.unshift(() => bareSink.process.stop());
    // An ordered hook has one request in flight, so the bare loop has one as well.
    const bare = await BenchProcess.start('programs/bare-undici.ts', [bareSink.first, '1', String(size.batch)]);
    stops.unshift(() => bare.process.stop());
    await server.start();
    const group = await server.createGroup('Backlog');
    const hook = { url: `http://127.0.0.1:${sink.first}/hook`, batch: size.batch };
    const { status } = await postJson(`${group.webhook}/reverse`, hook);
    if (status !== 201) throw new Error(`the registration was answered ${status}`);
    // `fillLog` writes to the database and wakes no lane. The post below is the last message, and wakes the lane.
    await fillLog(server, group, size.messages - 1);
    await wait(SETTLED_MS);
    const before = residentMiB(server.pid);
    await postMessages(group.webhook, 1, 1);
    const drained = await drain(size, sink.process, () => residentMiB(server.pid));
    await wait(SETTLED_MS);
    const after = residentMiB(server.pid);
    const bareRates = await sendBare(size, bare.process, bareSink.process);
    const parts = drained.map((part, n) => ({ ...part, bareRate: bareRates[n]! }));
    const memory = { before, peak: Math.max(before, ...drained.map((part) => part.peakMiB)), after };
    return print(size, parts, memory);
  } finally {
    for (const stop of stops) await stop();
  }
}

function partsOf({ messages }: BacklogSize): number[] {
  return Array.from(
    { length: PARTS },
    (_, n) => Math.floor(((n + 1) * messages) / PARTS) - Math.floor((n * messages) / PARTS),
  );
}

async function drain(
  size: BacklogSize,
  sink: BenchProcess,
  memoryMiB: () => number,
): Promise<Omit<Part, 'bareRate'>[]> {
  const parts: Omit<Part, 'bareRate'>[] = [];
  let peakMiB = 0;
  const sampling = setInterval(() => (peakMiB = Math.max(peakMiB, memoryMiB())), SAMPLE_MS);
  try {
    for (const count of partsOf(size)) {
      const started = performance.now();
      peakMiB = memoryMiB();
      const seen = JSON.parse(await sink.ask(`count ${count}`)) as { requests: number; misplaced: number };
      const rate = count / ((performance.now() - started) / 1_000);
      parts.push({ rate, perRequest: count / seen.requests, misplaced: seen.misplaced, peakMiB });
    }
    return parts;
  } finally {
    clearInterval(sampling);
  }
}

async function sendBare(size: BacklogSize, bare: BenchProcess, sink: BenchProcess): Promise<number[]> {
  const rates: number[] = [];
  for (const count of partsOf(size)) {
    const done = sink.ask(`count ${count}`);
    rates.push(count / Number(await bare.ask(`send ${count}`)));
    await done;
  }
  return rates;
}

function print({ messages, batch }: BacklogSize, parts: readonly Part[], memory: Memory): boolean {
  const rows = parts.map((part) => ({
    'messages/s': round(part.rate),
    'bare undici/s': round(part.bareRate),
    ratio: round(part.rate / part.bareRate, 3),
    'messages/request': round(part.perRequest, 1),
    'out of order': part.misplaced,
    'peak MiB': round(part.peakMiB, 1),
  }));
  // All tenths have the same number of messages, so the overall rate is their harmonic mean.
  const whole = (of: 'rate' | 'bareRate'): number => parts.length / parts.reduce((sum, part) => sum + 1 / part[of], 0);
  const misplaced = parts.reduce((sum, part) => sum + part.misplaced, 0);
  const half = Math.ceil(parts.length / 2);
  const peakOf = (some: readonly Part[]): number => Math.max(...some.map((part) => part.peakMiB));
  const grownMiB = peakOf(parts.slice(half)) - peakOf(parts.slice(0, half));
  const met = grownMiB <= GROWTH_TARGET_MIB && misplaced === 0;
  report(`backlog: ${messages} messages to one hook with batch ${batch}, by tenths`, rows, {
    bench: 'backlog',
    ratio: round(whole('rate') / whole('bareRate'), 3),
    baseline: `bare undici loop that makes, signs and posts bodies of ${batch}, one at a time; no target`,
    rate: round(whole('rate')),
    messages,
    batch,
    'memory MiB': { before: round(memory.before, 1), peak: round(memory.peak, 1), after: round(memory.after, 1) },
    'second half adds, MiB': round(grownMiB, 1),
    'target of that': GROWTH_TARGET_MIB,
    'out of order': misplaced,
    met,
  });
  return met;
}
