import { spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The address of the silent name server, at port 53: a line of resolv.conf cannot name another port. */
const SERVER = '127.0.9.53';
/** A look-up of an unknown name must get no answer for this long; otherwise the name server is not silent. */
const SILENT_MS = 1_500;
const PROBE_MS = 10_000;

/**
 * A way to run a program whose look-ups get other answers. The given names have addresses; all other names go to a name
 * server that never answers.
 */
export interface SilentNames {
  /** The beginning of a command line, after which the program and its arguments follow. */
  readonly command: readonly string[];
  /** How the look-ups are silenced, in words, for the report. */
  readonly how: string;
  readonly stop: () => Promise<void>;
}

/**
 * Returns a command that runs a program in its own mount namespace, where resolv.conf names a server that does not
 * answer. The real getaddrinfo then acts as it does when a name server is down. Users other than root also need a user
 * namespace. The function tries a look-up in each way, and returns null if none works.
 */
export async function silenceNames(hosts: ReadonlyMap<string, string>): Promise<SilentNames | null> {
  const folder = await mkdtemp(join(tmpdir(), 'klatch-names-'));
  const server = await bindSilentServer();
  const stop = async (): Promise<void> => {
    server?.close();
    await rm(folder, { recursive: true, force: true });
  };
  await writeFile(join(folder, 'hosts'), [...hosts].map(([name, ip]) => `${ip} ${name}\n`).join(''));
  await writeFile(join(folder, 'resolv.conf'), `nameserver ${SERVER}\n`);
  await writeFile(join(folder, 'nsswitch.conf'), 'hosts: files dns\n');
  const [name] = hosts.keys();
  for (const { command, how } of server === null ? [] : namespaces(folder)) {
    if (await isSilent(command, name!)) return { command, how, stop };
  }
  await stop();
  return null;
}

/**
 * Returns a command that runs a program in its own network namespace, where it may bind port 53. A benchmark that may
 * not bind that port itself restarts itself with the command. Null where user namespaces are not available.
 */
export function ownNetwork(): readonly string[] | null {
  const up = '(ip link set lo up || ifconfig lo up) 2>/dev/null && exec "$@"';
  const [program, ...args] = ['unshare', '--user', '--map-root-user', '--net', '--', 'sh', '-c', up, 'sh'] as const;
  const { status } = spawnSync(program, [...args, 'true'], { stdio: 'ignore', timeout: PROBE_MS });
  return status === 0 ? [program, ...args] : null;
}

/** A socket at port 53 that never answers; null if the port cannot be bound. */
async function bindSilentServer(): Promise<Socket | null> {
  const socket = createSocket('udp4');
  try {
    socket.bind(53, SERVER);
    await once(socket, 'listening');
    socket.unref();
    return socket;
  } catch {
    // The port is in use, or this user may not bind it. Root may, and so may every user where
    // net.ipv4.ip_unprivileged_port_start allows it.
    return null;
  }
}

function namespaces(folder: string): { command: readonly string[]; how: string }[] {
  const files = ['hosts', 'resolv.conf', 'nsswitch.conf'].filter((file) => existsSync(join('/etc', file)));
  const mounts = files.map((file) => `mount --bind ${folder}/${file} /etc/${file}`).join(' && ');
  const uid = process.getuid!();
  // PostgreSQL refuses to run as root, even as root of a user namespace. So a second user namespace maps another user.
  const [user, group] = uid === 0 ? [1000, 1000] : [uid, process.getgid!()];
  const asUser = `exec unshare --user --map-user=${user} --map-group=${group} -- "$@"`;
  const unprivileged = {
    command: ['unshare', '--user', '--map-root-user', '--mount', '--', 'sh', '-c', `${mounts} && ${asUser}`, 'sh'],
    how: 'a user and mount namespace',
  };
  if (uid !== 0) return [unprivileged];
  const privileged = {
    command: ['unshare', '--mount', '--', 'sh', '-c', `${mounts} && exec "$@"`, 'sh'],
    how: 'a mount namespace',
  };
  return [privileged, unprivileged];
}

/**
 * Runs a look-up with the command. True if the known name has an address, and the look-up of an unknown name gets no
 * answer.
 */
async function isSilent(command: readonly string[], known: string): Promise<boolean> {
  // The program kills itself. Otherwise its thread would wait for the look-up for another ten seconds.
  const program = `
    const { lookup } = require('node:dns/promises');
    const end = (text) => { require('node:fs').writeSync(1, text); process.kill(process.pid, 'SIGKILL'); };
    lookup('${known}').then(() => {
      setTimeout(() => end('silent'), ${SILENT_MS});
      return lookup('nobody-knows.test');
    }).then(() => end('answered'), (error) => end(error.code));`;
  const [first, ...args] = [...command, process.execPath, '-e', program];
  const child = spawn(first, args, { stdio: ['ignore', 'pipe', 'ignore'], timeout: PROBE_MS, killSignal: 'SIGKILL' });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const { promise, resolve } = Promise.withResolvers<boolean>();
  // The machine has no program `unshare`.
  child.once('error', () => resolve(false));
  child.once('close', () => resolve(said === 'silent'));
  return promise;
}
