import { setTimeout as wait } from 'node:timers/promises';
import { residentMiB } from './support/cpu.ts';
import { LiveStage, type Side } from './live/live-stage.ts';
import { median, report, round } from './support/report.ts';

const SESSIONS = 10_000;
const ROUNDS = 3;
/**
 * This many sessions connect before the measurement. By then V8 has collected the garbage of the start. Otherwise the
 * measured sessions would reuse its memory.
 */
const FIRST = 2_000;
/**
 * The wait for V8 to collect the garbage of opening sessions and to return its memory. V8 begins to return memory 8 s
 * after a collection.
 */
const REST_MS = 20_000;
/** A session may take at most this many times the memory of an idle connection to the bare server. */
const TARGET = 1.5;

/**
 * Measures the memory of an idle session that has authenticated and subscribed. The baseline is an idle connection of a
 * bare `ws` server.
 */
export async function benchIdle(): Promise<boolean> {
  const rounds: { klatch: number; tcp: number; bare: number }[] = [];
  for (let n = 0; n < ROUNDS; n += 1) {
    rounds.push({
      klatch: await ofServer('ws'),
      tcp: await ofServer('tcp'),
      bare: await ofBare(),
    });
  }
  const ratio = round(median(rounds.map(({ klatch, bare }) => klatch / bare)), 2);
  const kib = (name: keyof (typeof rounds)[number]): number => round(median(rounds.map((each) => each[name])), 1);
  report(
    `idle: ${SESSIONS} idle sessions`,
    rounds.map((each) => ({
      'ws, KiB a session': round(each.klatch, 1),
      'tcp, KiB a session': round(each.tcp, 1),
      'bare ws, KiB a connection': round(each.bare, 1),
      ratio: round(each.klatch / each.bare, 2),
    })),
    {
      bench: 'idle',
      ratio,
      target: TARGET,
      baseline: 'bare ws server, memory of a connection; less is better',
      rate: SESSIONS,
      'KiB a session': { ws: kib('klatch'), tcp: kib('tcp'), bare: kib('bare') },
    },
  );
  return ratio <= TARGET;
}

/**
 * Starts a server and measures its sessions. On the server of an earlier round, they would reuse the heap that its
 * sessions freed.
 */
async function ofServer(transport: 'ws' | 'tcp'): Promise<number> {
  const stage = await LiveStage.start();
  try {
    const first = await stage.people(transport, FIRST, { default: 'now' });
    const side = await stage.people(transport, SESSIONS, { default: 'now' });
    return await grow(first, side, stage.server.pid);
  } finally {
    await stage.stop();
  }
}

async function ofBare(): Promise<number> {
  const stage = await LiveStage.start();
  try {
    const first = await stage.bare(FIRST);
    return await grow(first, await stage.moreOf(first.port, SESSIONS), first.pid);
  } finally {
    await stage.stop();
  }
}

/** Returns by how much the memory of a process grows for each connection, in KiB. */
async function grow(first: Side, side: Side, pid: number): Promise<number> {
  await first.clients.ask('open');
  await wait(REST_MS);
  const before = residentMiB(pid);
  const opened = Number(await side.clients.ask('open'));
  if (opened !== SESSIONS) throw new Error(`only ${opened} sessions were opened`);
  await wait(REST_MS);
  return ((residentMiB(pid) - before) * 1_024) / SESSIONS;
}
