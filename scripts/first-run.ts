/**
 * `make run`: sets Klatch up in ./var at the first start, runs the server, and prints how to use it. The server's
 * output goes to the same terminal. This script prints lines with the group's token itself, so that the server's log
 * does not contain the token.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { constants } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { firstAdministrator, makeAdminLink, makeFirstGroup } from '../src/cli/admin-link.ts';
import { configure } from '../src/cli/setup/configure.ts';
import { callServer } from '../src/cli/core/control-client.ts';
import { exitCodes } from '../src/cli/core/exit-codes.ts';
import { addressLines } from '../src/cli/group/group-info-lines.ts';
import { explainFailure } from '../src/cli/core/explain-failure.ts';
import { CommandError } from '../src/cli/core/failure.ts';
import { StopSignals } from '../src/cli/core/stop-signals.ts';
import type { Config } from '../src/config/config.ts';
import { loadConfig } from '../src/config/load.ts';
import { groupInfo, listAllGroups } from '../src/operations/groups/groups.ts';
import { serverStatus } from '../src/operations/server/server-status.ts';
import { createUser } from '../src/operations/accounts/users.ts';
import { ensureDataDir } from '../src/data-dir/lock.ts';

const ROOT = join(import.meta.dirname, '..');
const FOLDER = 'var';
const CONFIG = `${FOLDER}/server.conf`;
const FIRST_PORT = 9090;
const FIRST_LIVE_PORTS = { websocket: 9080, tcp: 9070 } as const;
const PORTS_TRIED = 100;
/**
 * The longest wait for the server. The creation of the database files takes a second, or up to half a minute on a slow
 * disk.
 */
const READY_TIMEOUT_MS = 120_000;
const POLL_MS = 100;
/**
 * The time after a signal until this script kills the server. It is longer than `http.stop-timeout` and the time limit
 * of the embedded database together.
 */
const STOP_TIMEOUT_MS = 60_000;

type GroupInfo = Awaited<ReturnType<(typeof groupInfo)['run']>>;

/**
 * The server as a child process. `ended` resolves with its exit status; after a signal, with 128 plus the signal's
 * number.
 */
interface Child {
  readonly process: ChildProcess;
  readonly ended: Promise<number>;
}

async function main(): Promise<number> {
  process.chdir(ROOT);
  if (!existsSync(CONFIG)) await setUp();
  const { config } = loadConfig(CONFIG, { env: process.env });
  const child = startServer();
  const signals = forwardSignals(child);
  try {
    // A stop during the start ends the server before it is ready, which is no failure.
    const isReady = await Promise.race([waitUntilReady(config, child), signals.firstSignal.then(() => false)]);
    if (isReady) {
      const group = await firstGroup(config);
      say(usage(config, group, await addressToOpen(config)));
    }
    return await endOf(child, signals);
  } finally {
    signals.stop();
    child.process.kill('SIGTERM');
  }
}

/** Writes the configuration of `klatch setup --embedded`, for this machine only. */
async function setUp(): Promise<void> {
  const port = await findFreePort(FIRST_PORT);
  const websocket = await findFreePort(FIRST_LIVE_PORTS.websocket, [port]);
  const tcp = await findFreePort(FIRST_LIVE_PORTS.tcp, [port, websocket]);
  // Sets the folder's mode, which the embedded database requires, before a file is written into it.
  await ensureDataDir(FOLDER);
  configure(
    join(ROOT, CONFIG),
    {
      baseUri: `http://127.0.0.1:${port}`,
      database: { embedded: true },
      dataDir: '.',
      interface: '127.0.0.1',
      port,
      deliveryAllow: ['loopback'],
      // Switches the metrics off: their fixed port could be in use on this machine.
      metrics: false,
      endpoints: [
        { type: 'websocket', port: websocket },
        { type: 'tcp', port: tcp },
      ],
    },
    {
      env: process.env,
      notes: {
        'delivery.allow': 'For a first try: receivers on this machine are allowed.',
        'metrics.enabled': 'For a first try: no port for Prometheus is opened.',
      },
    },
  );
  say(
    `Made ${CONFIG}: a private PostgreSQL in ./${FOLDER}, HTTP on 127.0.0.1:${port}, ws on ${websocket}, tcp on ${tcp}.`,
  );
}

async function findFreePort(first: number, taken: readonly number[] = []): Promise<number> {
  for (let port = first; port < first + PORTS_TRIED; port += 1) {
    if (!taken.includes(port) && (await isFree(port))) return port;
  }
  throw new CommandError(exitCodes.cannotCreate, `no port from ${first} on is free on 127.0.0.1`);
}

async function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1' }, () => server.close(() => resolve(true)));
  });
}

/** Starts the server in this process group, so that Ctrl-C and a closed terminal signal both processes. */
function startServer(): Child {
  const args = ['src/main.ts', 'serve', '--config', CONFIG];
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = new Promise<number>((resolve, reject) => {
    server.once('error', reject);
    server.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? 'SIGKILL']));
  });
  return { process: server, ended };
}

/** Forwards signals. If the server gets a signal twice, from the terminal and from here, it treats them as one. */
function forwardSignals({ process: server }: Child): StopSignals {
  const signals = new StopSignals((signal) => server.kill(signal));
  void signals.firstSignal.then((signal) => server.kill(signal));
  signals.start();
  return signals;
}

/** Resolves to true once the server answers, and to false if the server exited, which has then printed why. */
async function waitUntilReady(config: Config, child: Child): Promise<boolean> {
  const ended = child.ended.then(() => true);
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  while (performance.now() < deadlineMs) {
    if (await isReady(config, child)) return true;
    if (await Promise.race([ended, wait(POLL_MS, false)])) return false;
  }
  throw new CommandError(exitCodes.unavailable, `the server was not ready within ${READY_TIMEOUT_MS / 1000} s`);
}

async function isReady({ dataDir, http }: Config, child: Child): Promise<boolean> {
  try {
    // Compares process ids, because another Klatch server may hold the data directory, and another program the port.
    const { pid } = await callServer({ dataDir, operation: serverStatus, input: {} });
    if (pid !== child.process.pid) return false;
  } catch (error) {
    if (error instanceof CommandError) return false;
    throw error;
  }
  const host = http.interface.includes(':') ? `[${http.interface}]` : http.interface;
  const response = await fetch(`http://${host}:${http.port}/v1/ready`).catch(() => null);
  return response?.ok === true;
}

/** The group with the lowest number; the first start creates one, with its owner. */
async function firstGroup({ dataDir }: Config): Promise<GroupInfo> {
  const first = { after: 0, limit: 1, archived: null };
  const { groups } = await callServer({ dataDir, operation: listAllGroups, input: first });
  const group = groups[0];
  if (group !== undefined) return callServer({ dataDir, operation: groupInfo, input: { group: group.id } });
  const nick = 'owner';
  await callServer({ dataDir, operation: createUser, input: { nick, name: 'Owner', admin: true } }).catch(
    (error: unknown) => {
      // An interrupted earlier start may have created the account already.
      if (!(error instanceof CommandError) || error.exitCode !== exitCodes.operationFailed) throw error;
    },
  );
  return makeFirstGroup(dataDir, nick);
}

/**
 * An address that signs the first administrator in. Once that account has a session, the result is the plain address.
 */
async function addressToOpen({ dataDir, http }: Config): Promise<string> {
  const { hasSignedIn: isSignedIn } = await firstAdministrator(dataDir);
  return isSignedIn ? `${http.baseUri}/` : (await makeAdminLink(dataDir)).link;
}

function usage({ http }: Config, { title, webhook, addresses = [] }: GroupInfo, address: string): string {
  const receiver = `http://127.0.0.1:${http.port + 1}/`;
  const script =
    'require("http").createServer((q,s)=>q.setEncoding("utf8").on("data",console.log).on("end",()=>s.end()))' +
    `.listen(${http.port + 1},"127.0.0.1")`;
  return `Open ${address}

Klatch runs. The webhook of the group ${title}:
  ${webhook}

Post a message (in a second terminal, in this folder):
  curl -d 'Hello from the first run' ${webhook}
${addressLines(addresses).join('\n')}

Receive what is posted: start a receiver,
  node_modules/.bin/node -e '${script}'
and register it as a reverse webhook:
  curl -H 'Content-Type: application/json' -d '{"url":"${receiver}"}' ${webhook}/reverse

Another address to open, for another browser or when that one was used:
  bin/klatch --config ${CONFIG} admin-link

Talk in a terminal, as the owner of the group (the first command prints a link, the second one asks for it):
  bin/klatch --config ${CONFIG} user invite owner
  bin/klatch chat sign-in --server http://127.0.0.1:${http.port} --link
  bin/klatch chat

More: bin/klatch --config ${CONFIG} --help
Stop with Ctrl-C. Everything is kept in ./${FOLDER}, and \`make run\` goes on from there.
`;
}

/** Resolves with the exit status of the server, which is 0 after a requested stop. */
async function endOf(child: Child, signals: StopSignals): Promise<number> {
  const timeout = new AbortController();
  const overdue = signals.firstSignal.then(() => wait(STOP_TIMEOUT_MS, 'overdue' as const, { signal: timeout.signal }));
  // The code below aborts this wait when the server exits in time, which is no error.
  overdue.catch(() => {});
  const end = await Promise.race([child.ended, overdue]);
  timeout.abort();
  if (end === 'overdue') {
    child.process.kill('SIGKILL');
    throw new CommandError(exitCodes.internal, `the server did not stop within ${STOP_TIMEOUT_MS / 1000} s: killed it`);
  }
  if (end === 0) say('Klatch has stopped.');
  return end;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

try {
  process.exitCode = await main();
} catch (error) {
  const { exitCode, text } = explainFailure(error);
  process.stderr.write(`first run: ${text}\n`);
  process.exitCode = exitCode;
}
