/**
 * `npm run event-loop-hold` measures how long one request holds the event loop, for every route and operation. It also
 * measures how long other requests wait during that. It prints two tables in Markdown.
 *
 * It needs only the server's command line, its interface and its table of operations, so it also runs in an older tree.
 * Copy it there with `event-loop-probe.ts` and `hostile-bodies.ts`.
 */
import { mkdtempSync, readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { describeOperation } from '../src/operations/describe/operation-docs.ts';
import { operationTable } from '../src/operations/table.ts';
import { ServerProcess } from '../test/support/server-process.ts';
import { createUsers } from './seed-users.ts';
import {
  attacks,
  formBodies,
  gitEventBodies,
  frames,
  jsonBodies,
  type Attack,
  type HostileBody,
} from './hostile-bodies.ts';
import { BenchProcess } from './process.ts';

const REPEATS = Number(process.env['REPEATS'] ?? 5);
const PER_SECOND = 100;
const SECONDS = 5;
const GIVE_UP_MS = 15_000;
const SETTINGS = `
  limits { token-rate = 100000, token-burst = 1000000, hook-registrations-per-minute = 10000,
    hook-changes-per-minute = 10000, session-rate = 10000, session-burst = 100000, unknown-token-rate = 100000 }
  http.trusted-proxies = ["127.0.0.1"]
  log.level = error`;

interface Measured {
  readonly holdMs: number;
  readonly cpuMs: number;
}

/** A route or an operation, with the hostile requests for it. */
interface Target {
  readonly name: string;
  readonly isOperation: boolean;
  readonly shots: readonly Shot[];
}

interface Shot {
  readonly attack: Attack;
  readonly what: string;
  /**
   * Opens a connection if the request needs one. The returned function sends the request, and resolves when it is
   * answered.
   */
  readonly aim: (source: string) => Promise<() => Promise<void>>;
}

const result = join(mkdtempSync(join(tmpdir(), 'event-loop-hold-')), 'result.json');
let sources = 0;
const nextSource = (): string => `10.${(sources += 1) >> 16}.${(sources >> 8) & 255}.${sources & 255}`;

async function measured(server: ServerProcess): Promise<Measured> {
  await server.tell({ result });
  return JSON.parse(readFileSync(result, 'utf8')) as Measured;
}

/** Sends a request; resolves when the server has answered it or closed the connection. */
function send(
  server: ServerProcess,
  target: { method: string; path: string; token?: string },
  shot: HostileBody,
  source: string,
): Promise<void> {
  const { method, path, token } = target;
  return new Promise((resolve) => {
    const headers = {
      ...shot.headers,
      'content-length': shot.body.length,
      'x-forwarded-for': source,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const req = httpRequest({ host: '127.0.0.1', port: server.port, method, path, headers, agent: false });
    req.on('response', (res) => res.resume().on('close', resolve));
    req.on('error', () => resolve());
    req.setTimeout(GIVE_UP_MS, () => req.destroy());
    req.end(shot.body);
  });
}

function httpTarget(
  server: ServerProcess,
  name: string,
  how: { method: string; path: string; token?: string; bodies: HostileBody[] },
): Target {
  const shots = how.bodies.map((body) => ({
    attack: body.attack,
    what: body.what,
    aim: (source: string) => Promise.resolve(() => send(server, how, body, source)),
  }));
  return { name, isOperation: name.includes('.'), shots };
}

/** The target for one method of live connections. Each frame is sent over a connection of its own. */
function liveTarget(server: ServerProcess, method: string, token: string | null): Target {
  const aim = (text: string) => async (source: string) => {
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}/v1/live`, { headers: { 'x-forwarded-for': source } });
    socket.on('error', () => {});
    const next = (): Promise<void> =>
      new Promise((resolve) => {
        socket.once('message', () => resolve());
        socket.once('close', () => resolve());
      });
    await new Promise((resolve) => socket.once('open', resolve).once('close', resolve));
    if (token !== null && socket.readyState === WebSocket.OPEN) {
      socket.send(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'live.authenticate', params: { token } }));
      await next();
    }
    return async () => {
      const answered = next();
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
      await answered;
      socket.terminate();
    };
  };
  const shots = frames(method).map(({ attack, what, text }) => ({ attack, what, aim: aim(text) }));
  return { name: `live: \`${method}\`${token === null ? ' before signing in' : ''}`, isOperation: false, shots };
}

async function targets(server: ServerProcess): Promise<Target[]> {
  const group = await server.createGroup('Lobby');
  const tokens = await createUsers(server, group.id, 1);
  const token = tokens[0]!;
  const path = `/v1/webhooks/${group.token}`;
  const made = await fetch(`${server.url}${path}/reverse`, {
    method: 'POST',
    body: '{"url":"http://127.0.0.1:9/"}',
  });
  const { id } = (await made.json()) as { id: number };
  const operations = [...operationTable().values()].filter(({ who }) => who !== 'system');
  return [
    httpTarget(server, 'POST /v1/webhooks/<token>', {
      method: 'POST',
      path,
      bodies: [...jsonBodies(), ...formBodies()],
    }),
    httpTarget(server, 'POST /v1/webhooks/<token> (git)', { method: 'POST', path, bodies: gitEventBodies() }),
    httpTarget(server, 'POST …/reverse', { method: 'POST', path: `${path}/reverse`, bodies: jsonBodies('url') }),
    httpTarget(server, 'PATCH …/reverse/<id>', {
      method: 'PATCH',
      path: `${path}/reverse/${id}`,
      bodies: jsonBodies('order'),
    }),
    httpTarget(server, 'POST …/redeliver', {
      method: 'POST',
      path: `${path}/reverse/${id}/redeliver`,
      bodies: jsonBodies('from'),
    }),
    httpTarget(server, 'POST …/ping', { method: 'POST', path: `${path}/reverse/${id}/ping`, bodies: jsonBodies() }),
    httpTarget(server, 'any …/status', { method: 'POST', path: `${path}/status`, bodies: jsonBodies() }),
    liveTarget(server, 'live.ping', null),
    liveTarget(server, 'live.authenticate', null),
    liveTarget(server, 'live.ping', token),
    liveTarget(server, 'live.subscribe', token),
    liveTarget(server, 'messages.send', token),
    ...operations.map((operation) => {
      const fields = Object.entries(describeOperation(operation).input.properties ?? {});
      const field = fields.find(([, { type }]) => type === 'string')?.[0];
      const who = operation.who === 'anybody' ? {} : { token };
      return httpTarget(server, operation.name, {
        method: 'POST',
        path: `/v1/api/${operation.name}`,
        bodies: jsonBodies(field),
        ...who,
      });
    }),
  ];
}

interface Row {
  readonly target: Target;
  readonly cells: Partial<Record<Attack, Measured & { readonly shot: Shot }>>;
}

/**
 * Sends each body REPEATS times. The shortest hold of the event loop counts for a body: other programs disturbed it
 * least. For each kind of body, the result has the body with the longest hold.
 */
async function attackOnce(server: ServerProcess, target: Target): Promise<Row> {
  const cells: Row['cells'] = {};
  for (const shot of target.shots) {
    const found: Measured[] = [];
    for (let repeat = 0; repeat < REPEATS; repeat += 1) {
      const fire = await shot.aim(nextSource());
      await measured(server);
      await fire();
      await wait(3);
      found.push(await measured(server));
    }
    const holdMs = Math.min(...found.map((each) => each.holdMs));
    // The kernel counts CPU time in ticks of 4 ms, so the mean is more exact than the minimum.
    const cpuMs = found.reduce((sum, each) => sum + each.cpuMs, 0) / found.length;
    if (holdMs > (cells[shot.attack]?.holdMs ?? -1)) cells[shot.attack] = { holdMs, cpuMs, shot };
  }
  return { target, cells };
}

const worstOf = ({ cells }: Row): (Measured & { shot: Shot }) | undefined =>
  Object.values(cells).sort((a, b) => b.holdMs - a.holdMs)[0];

/** Measures how long `/v1/status` takes while one source sends the same request PER_SECOND times a second. */
async function statusWhile(asker: BenchProcess, shot: Shot | null): Promise<{ p99: number; unanswered: number }> {
  const source = nextSource();
  const sent: Promise<void>[] = [];
  const fire = async (): Promise<void> => (await shot!.aim(source))();
  const timer = setInterval(() => {
    if (shot !== null) sent.push(fire());
  }, 1_000 / PER_SECOND);
  const found = JSON.parse(await asker.ask(String(SECONDS * 1_000))) as { p99: number; unanswered: number };
  clearInterval(timer);
  await Promise.race([Promise.all(sent), wait(GIVE_UP_MS)]);
  return found;
}

const ms = (value: number): string => (value < 10 ? value.toFixed(1) : value.toFixed(0));

function printHolds(rows: readonly Row[]): void {
  console.log(
    `\n| Request | ${attacks.join(' | ')} | Processor time of the worst |\n|${' --- |'.repeat(attacks.length + 2)}`,
  );
  for (const row of rows) {
    const cells = attacks.map((attack) => {
      const cell = row.cells[attack];
      return cell === undefined ? '–' : ms(cell.holdMs);
    });
    console.log(`| ${row.target.name} | ${cells.join(' | ')} | ${ms(worstOf(row)?.cpuMs ?? 0)} |`);
  }
}

async function main(): Promise<void> {
  const only = (process.argv[2] ?? '').split(',');
  const preload = join(import.meta.dirname, 'event-loop-probe.ts');
  const server = await ServerProcess.create(SETTINGS, { preload });
  try {
    await server.start();
    const all = (await targets(server)).filter(({ name }) => only.some((part) => name.includes(part)));
    // These attacks are a warm-up: V8 compiles the hot code.
    for (const target of all.slice(0, 4)) await attackOnce(server, target);
    const rows: Row[] = [];
    for (const target of all) rows.push(await attackOnce(server, target));
    printHolds(rows);
    const worst = (row: Row): number => worstOf(row)?.holdMs ?? 0;
    const operations = rows.filter(({ target }) => target.isOperation).sort((a, b) => worst(b) - worst(a));
    console.log(
      '\n| While one source sends 100 a second | Body | p99 of `/v1/status` | Without an answer |\n| --- | --- | --- | --- |',
    );
    const asker = await BenchProcess.start('programs/status-asker.ts', [server.url]);
    const idle = await statusWhile(asker.process, null);
    console.log(`| nothing | – | ${ms(idle.p99)} | ${idle.unanswered} |`);
    for (const row of [...rows.filter(({ target }) => !target.isOperation), ...operations.slice(0, 6)]) {
      const shot = worstOf(row)!.shot;
      const { p99, unanswered } = await statusWhile(asker.process, shot);
      console.log(`| ${row.target.name} | ${shot.attack}: ${shot.what} | ${ms(p99)} | ${unanswered} |`);
    }
    await asker.process.stop();
  } finally {
    await server.discard();
  }
}

await main();
