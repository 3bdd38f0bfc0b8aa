import { spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The address of the silent server; resolv.conf has no port, so the port has to be 53. */
const SERVER = '127.0.9.53';
/** A look-up of an unknown name must have no answer for this long, or the server is not silent. */
const SILENT_MS = 1_500;
const PROBE_MS = 10_000;

/**
 * A program's view of host names: the given ones have an address, and a silent name server is responsible for all
 * others.
 */
export interface SilentNames {
  /** The beginning of a command line; the program and its arguments follow. */
  readonly command: readonly string[];
  /** The method, for the report. */
  readonly how: string;
  readonly stop: () => Promise<void>;
}

/**
 * A command that runs a program in a mount namespace of its own, whose resolv.conf names a server that does not answer.
 * The real getaddrinfo then acts as it does when a name server is down. Users other than root need a user namespace as
 * well. Null where neither works; it tries a look-up.
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
 * A command that runs a program with a loopback interface of its own, where every user may bind port 53. It is for a
 * benchmark without root and without that right. Null where user namespaces are not available.
 */
export function ownNetwork(): readonly string[] | null {
  const up = '(ip link set lo up || ifconfig lo up) 2>/dev/null && exec "$@"';
  const [program, ...args] = ['unshare', '--user', '--map-root-user', '--net', '--', 'sh', '-c', up, 'sh'] as const;
  const { status } = spawnSync(program, [...args, 'true'], { stdio: 'ignore', timeout: PROBE_MS });
  return status === 0 ? [program, ...args] : null;
}

/** A socket at port 53 that never answers; null without the right to bind it. */
async function bindSilentServer(): Promise<Socket | null> {
  const socket = createSocket('udp4');
  try {
    socket.bind(53, SERVER);
    await once(socket, 'listening');
    socket.unref();
    return socket;
  } catch {
    // Not permitted (root may, and every user where net.ipv4.ip_unprivileged_port_start allows it), or in use.
    return null;
  }
}

function namespaces(folder: string): { command: readonly string[]; how: string }[] {
  const files = ['hosts', 'resolv.conf', 'nsswitch.conf'].filter((file) => existsSync(join('/etc', file)));
  const mounts = files.map((file) => `mount --bind ${folder}/${file} /etc/${file}`).join(' && ');
  const uid = process.getuid!();
  // PostgreSQL refuses to run as root, also as the root of a user namespace: a second namespace has another user.
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

/** Tries the command: the known name has an address, and the look-up of an unknown one gets no answer. */
async function isSilent(command: readonly string[], known: string): Promise<boolean> {
  // It kills itself: its thread would otherwise wait in the look-up for another ten seconds.
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
  // The machine lacks the program.
  child.once('error', () => resolve(false));
  child.once('close', () => resolve(said === 'silent'));
  return promise;
}
