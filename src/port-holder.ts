import { readdir, readFile, readlink } from 'node:fs/promises';
import { isIP } from 'node:net';
import { basename } from 'node:path';

/** Processes that are looked into; more than this is no machine that Klatch runs on. */
const MAX_PROCESSES = 100_000;
/** The state of a socket that listens, as the kernel writes it. */
const LISTENING_STATE = '0A';

/** Who listens on a port. What the kernel does not show to this user is null. */
interface PortHolder {
  readonly pid: number | null;
  /** The name of its program's file. */
  readonly program: string | null;
  readonly uid: number;
}

interface ListeningSocket {
  readonly inode: string;
  readonly uid: number;
}

/**
 * Who listens on a TCP port of this machine at an address, or at all addresses; null where nobody does or nothing can be
 * told. The process of another user is found by root alone, the user by everybody.
 */
export async function findPortHolder(host: string, port: number): Promise<PortHolder | null> {
  const sockets = (await Promise.all(['tcp', 'tcp6'].map((table) => listeningSockets(table, port)))).flat();
  const found = sockets.find(({ address }) => blocksListeningAt(address, host));
  if (found === undefined) return null;
  const pid = await findProcessOf(found);
  return { pid, program: pid === null ? null : await programNameOf(pid), uid: found.uid };
}

/** The holder behind the words "another program listens there", or nothing. */
export function describePortHolder(holder: PortHolder | null): string {
  if (holder === null) return '';
  const { pid, program, uid } = holder;
  if (pid === null) return `: a program of the user with uid ${uid}`;
  return `: ${program ?? 'a program'} (pid ${pid})`;
}

/** Lines of /proc/net/tcp: number, address:port, peer, state, queues, timer, retransmissions, uid, time-out, inode. */
async function listeningSockets(
  table: string,
  port: number,
): Promise<(ListeningSocket & { readonly address: string })[]> {
  const text = await readFile(`/proc/net/${table}`, 'utf8').catch(nullIfUnreadable);
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return (text ?? '').split('\n').flatMap((line) => {
    const [, local, , state, , , , uid, , inode] = line.trim().split(/\s+/);
    if (state !== LISTENING_STATE || inode === undefined || !local!.endsWith(ending)) return [];
    return [{ address: local!.slice(0, -ending.length), uid: Number(uid), inode }];
  });
}

/** Whether who listens at `address`, as the kernel writes it, is in the way of listeningSockets at `host`. */
function blocksListeningAt(address: string, host: string): boolean {
  if (/^0+$/.test(address) || host === '::' || host === '0.0.0.0') return true;
  const own = isIP(host) === 4 ? toKernelHex(host.split('.').map(Number)) : null;
  // A name, or an address of IPv6, whose spellings are many: nobody else can have the same port at it.
  return own === null ? true : address === own || address.endsWith(own);
}

/** As the kernel writes it: in the order of this machine's bytes, and those are turned round. */
function toKernelHex(bytes: readonly number[]): string {
  return [...bytes]
    .reverse()
    .map((byte) => byte.toString(16).toUpperCase().padStart(2, '0'))
    .join('');
}

async function findProcessOf({ inode }: ListeningSocket): Promise<number | null> {
  const pids = ((await readdir('/proc').catch(nullIfUnreadable)) ?? []).filter((name) => /^\d+$/.test(name));
  for (const pid of pids.slice(0, MAX_PROCESSES)) {
    if (await hasOpenFile(pid, `socket:[${inode}]`)) return Number(pid);
  }
  return null;
}

async function hasOpenFile(pid: string, target: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const names = (await readdir(folder).catch(nullIfUnreadable)) ?? [];
  const links = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(nullIfUnreadable)));
  return links.includes(target);
}

async function programNameOf(pid: number): Promise<string | null> {
  const file = await readlink(`/proc/${pid}/exe`).catch(nullIfUnreadable);
  return file === null ? null : basename(file.replace(/ \(deleted\)$/, ''));
}

/** A process that has ended meanwhile, another user's, or a machine without /proc: nothing to tell. */
function nullIfUnreadable(): null {
  return null;
}
