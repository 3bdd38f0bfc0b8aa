import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Sealer } from '../src/storage/db/sealed.ts';
import { createAppleKey, createTls } from '../test/push/keys.ts';
import type { TestGroup } from '../test/support/server.ts';
import { SECRET, ServerProcess } from '../test/support/server-process.ts';
import { noPreparation, openOrStop, stopAll, type BenchSession, type RoundResult } from './bench-session.ts';
import { cpuSeconds } from './support/cpu.ts';
import { createUsers } from './seed-users.ts';
import { asSuperuser } from './seed-data.ts';
import { SETTINGS } from './intake.ts';
import { BenchProcess } from './process.ts';
import { median, report, round } from './support/report.ts';

/** Rounds that do not count: in them, V8 compiles the hot code of all processes. */
const WARM_UP_ROUNDS = 2;
const ROUNDS = 15;
const GROUPS = 10;
const PEOPLE = 1_000;
/** The pushes of a round: one for each person, who has one device. */
const PUSHES = GROUPS * PEOPLE;
/** The number of pushes in flight, in the server and in the baselines. `push.in-flight` has to allow them. */
const STREAMS = 500;
const TARGET = 0.5;

/** The pushes a second of one round, and the CPU time of a push in microseconds. */
interface Rates {
  readonly push: number;
  readonly serverUs: number;
  readonly databaseUs: number;
  readonly driver: number;
  readonly bare: number;
}

/**
 * Measures 10,000 pushes of the running server. The baseline is a bare loop of node:http2 that makes and posts as many.
 * The server also writes rows for messages to PostgreSQL, claims them and settles them. The benchmark measures the
 * driver for Apple's service alone, too.
 */
export async function benchPush(): Promise<boolean> {
  const stage = await openStage();
  const { server, groups, sink } = stage;
  try {
    const start = async (script: string, args: readonly string[]) => {
      const started = await BenchProcess.start(script, args);
      stage.stops.unshift(() => started.process.stop());
      return started;
    };
    const bare = await start('programs/bare-h2.ts', [sink.first, stage.authority, String(STREAMS)]);
    const driver = await start('programs/apple-driver.ts', [sink.first, stage.authority, stage.p8, String(STREAMS)]);
    const database = Number(readFileSync(join(server.dataDir, 'postgresql/postmaster.pid'), 'utf8').split('\n')[0]);
    const rate = async (process: BenchProcess): Promise<number> => {
      const done = sink.process.ask(`count ${PUSHES}`);
      const seconds = Number(await process.ask(`send ${PUSHES}`));
      await done;
      return PUSHES / seconds;
    };
    const rows: Rates[] = [];
    for (let n = 0; n < WARM_UP_ROUNDS + ROUNDS; n += 1) {
      const before = { server: cpuSeconds(server.pid), database: cpuSeconds(database) };
      const push = PUSHES / (await timePush(server, groups, sink.process));
      const serverUs = ((cpuSeconds(server.pid) - before.server) / PUSHES) * 1e6;
      const databaseUs = ((cpuSeconds(database) - before.database) / PUSHES) * 1e6;
      const row = { push, serverUs, databaseUs, driver: await rate(driver.process), bare: await rate(bare.process) };
      if (n >= WARM_UP_ROUNDS) rows.push(row);
    }
    return print(rows);
  } finally {
    await stopAll(stage.stops);
  }
}

/** Runs only the server and its sink, round by round. */
export async function openPush(): Promise<BenchSession> {
  const { stops, server, groups, sink } = await openStage();
  const round = async (): Promise<RoundResult> => {
    return { units: PUSHES, seconds: await timePush(server, groups, sink.process) };
  };
  return openOrStop(stops, async () => {
    for (let n = 0; n < WARM_UP_ROUNDS; n += 1) await round();
    return { prepare: noPreparation, round, stop: () => stopAll(stops) };
  });
}

interface Stage {
  /** The functions that stop the processes, in the order in which they have to be called. */
  readonly stops: (() => Promise<void>)[];
  readonly server: ServerProcess;
  readonly groups: readonly TestGroup[];
  readonly sink: { readonly process: BenchProcess; readonly first: string };
  /** Paths of files: the authority that signed the sink's certificate, and the key for Apple's service. */
  readonly authority: string;
  readonly p8: string;
}

/** Starts a server whose accounts are all offline, and a sink that replaces Apple's service. */
async function openStage(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'klatch-bench-push-'));
  const stops = [async (): Promise<void> => rmSync(folder, { recursive: true, force: true })];
  return openOrStop(stops, async () => {
    const tls = createTls();
    const file = (name: string, content: string): string => {
      writeFileSync(join(folder, name), content, { mode: 0o600 });
      return join(folder, name);
    };
    const [authority, p8] = [file('ca.pem', tls.authority), file('key.p8', createAppleKey().p8)];
    const sink = await BenchProcess.start('programs/apns-sink.ts', [
      file('cert.pem', tls.cert),
      file('cert.key', tls.key),
    ]);
    stops.unshift(() => sink.process.stop());
    const server = await ServerProcess.create(settings(sink.first, authority, p8));
    stops.unshift(() => server.remove());
    await server.start();
    return { stops, server, groups: await populate(server), sink, authority, p8 };
  });
}

/**
 * The settings of the server. The debounce is 0: a round has one message in each group, so a wait for more messages
 * would measure no work.
 */
function settings(port: string, authority: string, p8: string): string {
  return `${SETTINGS}
    push { in-flight = ${STREAMS}, debounce = 0s }
    services.apple.push {
      endpoint = "https://127.0.0.1:${port}"
      ca-file = "${authority}"
      keys = [{ key-id = KEY1234567, team-id = TEAM123456, path = "${p8}", bundle-id = org.example.chat }]
    }`;
}

/** Creates groups of accounts that are offline, each with a device. */
async function populate(server: ServerProcess): Promise<TestGroup[]> {
  const groups: TestGroup[] = [];
  for (let g = 0; g < GROUPS; g += 1) {
    const group = await server.createGroup(`Group ${g}`);
    await createUsers(server, group.id, PEOPLE);
    groups.push(group);
  }
  const sealer = new Sealer(SECRET);
  const tokens = Array.from({ length: PUSHES }, () => randomBytes(32).toString('hex'));
  await asSuperuser(server, async (sql) => {
    await sql`
      insert into device (account_id, session_id, kind, token_hash, token_sealed)
      select s.account_id, s.id, 'apple', t.token, t.sealed
      from (
        select id, account_id, row_number() over (order by id) as n from session where label = 'bench'
      ) s
      join unnest(${tokens}::text[], ${tokens.map((token) => sealer.seal('device-token', token))}::text[])
        with ordinality as t(token, sealed, n) using (n)`;
    await sql`vacuum (analyze)`;
  });
  return groups;
}

/** Returns the seconds from the first post until the last push is settled. One post leads to a thousand pushes. */
function timePush(server: ServerProcess, groups: readonly TestGroup[], sink: BenchProcess): Promise<number> {
  return asSuperuser(server, async (sql) => {
    const hasRows = async (): Promise<boolean> =>
      (await sql<{ left: boolean }[]>`select exists (select from push_pending) as left`)[0]!.left;
    // This first query also opens the connection, outside the measurement.
    if (await hasRows()) throw new Error('there are rows of the round before');
    const done = sink.ask(`count ${PUSHES}`);
    const started = performance.now();
    await Promise.all(groups.map(({ webhook }) => post(webhook)));
    await done;
    while (await hasRows()) await wait(5);
    return (performance.now() - started) / 1000;
  });
}

async function post(webhook: string): Promise<void> {
  const body = JSON.stringify({ text: 'load on web-1 is above its threshold' });
  const answer = await fetch(webhook, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  if (answer.status !== 200) throw new Error(`a post was answered ${answer.status}`);
}

function print(rounds: readonly Rates[]): boolean {
  const rows = rounds.map(({ push, serverUs, databaseUs, driver, bare }) => ({
    'pushes/s': round(push),
    'server µs': round(serverUs),
    'database µs': round(databaseUs),
    'driver alone/s': round(driver),
    'bare node:http2/s': round(bare),
    ratio: round(push / bare, 3),
  }));
  const ratio = round(median(rounds.map(({ push, bare }) => push / bare)), 3);
  report(`push: ${PUSHES} pushes from messages to settled rows, ${STREAMS} at once`, rows, {
    bench: 'push',
    ratio,
    baseline: 'bare node:http2 loop that makes and posts the same payloads',
    rate: round(median(rounds.map(({ push }) => push))),
    target: TARGET,
    driverRatio: round(median(rounds.map(({ driver, bare }) => driver / bare)), 3),
  });
  return ratio >= TARGET;
}
