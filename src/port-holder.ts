import { readdir, readFile, readlink } from 'node:fs/promises';
import { isIP } from 'node:net';
import { basename } from 'node:path';

/** The most processes that are examined. Machines that run Klatch have fewer. */
const MAX_EXAMINED_PROCESSES = 100_000;
/** The state of a listening socket, as the kernel writes it in /proc/net/tcp. */
const LISTENING_STATE = '0A';

/** The process that listens on a port. A field that the kernel does not show to this user is null. */
interface PortHolder {
  readonly pid: number | null;
  /** The file name of the process's program. */
  readonly program: string | null;
  readonly uid: number;
}

interface ListeningSocket {
  readonly inode: string;
  readonly uid: number;
}

/**
 * Finds the process whose socket prevents this one from listening at a TCP address and port of this machine. Null if
 * there is none, or it cannot be determined. Every user can determine the user of that process, but only root the
 * process of another user.
 */
export async function findPortHolder(host: string, port: number): Promise<PortHolder | null> {
  const sockets = (await Promise.all(['tcp', 'tcp6'].map((table) => listeningSockets(table, port)))).flat();
  const found = sockets.find(({ address }) => blocksListeningAt(address, host));
  if (found === undefined) return null;
  const pid = await findProcessOf(found);
  return { pid, program: pid === null ? null : await programNameOf(pid), uid: found.uid };
}

/** Describes the process, to follow the words "another program listens there"; empty for null. */
export function describePortHolder(holder: PortHolder | null): string {
  if (holder === null) return '';
  const { pid, program, uid } = holder;
  if (pid === null) return `: a program of the user with uid ${uid}`;
  return `: ${program ?? 'a program'} (pid ${pid})`;
}

/**
 * Reads the sockets that listen on a port from a table of /proc/net (`tcp` or `tcp6`). A line has number, address:port,
 * peer, state, queues, timer, retransmissions, uid, time-out and inode.
 */
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

/**
 * True if a socket that listens at `address` (in the kernel's notation) prevents another one from listening at `host`.
 */
function blocksListeningAt(address: string, host: string): boolean {
  if (/^0+$/.test(address) || host === '::' || host === '0.0.0.0') return true;
  const hostHex = isIP(host) === 4 ? toKernelHex(host.split('.').map(Number)) : null;
  // `host` is a name, or an IPv6 address, which has many spellings. Then every socket with the port counts.
  return hostHex === null ? true : address === hostHex || address.endsWith(hostHex);
}

/** Formats an IPv4 address as the kernel does on this little-endian machine: with its bytes reversed. */
function toKernelHex(bytes: readonly number[]): string {
  return [...bytes]
    .reverse()
    .map((byte) => byte.toString(16).toUpperCase().padStart(2, '0'))
    .join('');
}

async function findProcessOf({ inode }: ListeningSocket): Promise<number | null> {
  const pids = ((await readdir('/proc').catch(nullIfUnreadable)) ?? []).filter((name) => /^\d+$/.test(name));
  for (const pid of pids.slice(0, MAX_EXAMINED_PROCESSES)) {
    if (await hasOpenFile(pid, `socket:[${inode}]`)) return Number(pid);
  }
  return null;
}

async function hasOpenFile(pid: string, linkTarget: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const names = (await readdir(folder).catch(nullIfUnreadable)) ?? [];
  const links = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(nullIfUnreadable)));
  return links.includes(linkTarget);
}

async function programNameOf(pid: number): Promise<string | null> {
  const file = await readlink(`/proc/${pid}/exe`).catch(nullIfUnreadable);
  return file === null ? null : basename(file.replace(/ \(deleted\)$/, ''));
}

/**
 * The result of a failed read of /proc: the process has ended or belongs to another user, or the machine has no /proc.
 */
function nullIfUnreadable(): null {
  return null;
}
