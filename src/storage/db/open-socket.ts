import net from 'node:net';
import type { DatabaseTlsConfig } from '../../config/config.ts';
import type { ServerAddress } from './connection-target.ts';
import { startTls } from './tls.ts';

interface SocketOptions {
  readonly connectTimeoutMs: number;
  /** Root only: see ConnectionOptions. */
  readonly connectAsUid: number | undefined;
  /** Null: none. A Unix socket has none in any case. */
  readonly tls: DatabaseTlsConfig | null;
}

/** Who is told of the socket before anything can happen to it. */
interface SocketOwner {
  readonly onSocket: (socket: net.Socket) => void;
  readonly onClose: () => void;
}

export function isUnixSocket({ host }: ServerAddress): boolean {
  return host.startsWith('/');
}

/**
 * Connects to a server; resolves once it is connected, with TLS where that is asked for. The owner is given the socket
 * beneath TLS: destroying it ends both, and only it can be reset.
 */
export function openSocket(server: ServerAddress, options: SocketOptions, owner: SocketOwner): Promise<net.Socket> {
  const { host, port } = server;
  const { connectTimeoutMs, connectAsUid, tls } = options;
  const socket = isUnixSocket(server)
    ? withEffectiveUid(connectAsUid, () => net.connect({ path: `${host}/.s.PGSQL.${port}` }))
    : net.connect({ host, port, keepAlive: true, noDelay: true });
  owner.onSocket(socket);
  // The owner's is the first listener, so the session is marked as gone before the library rejects what was under way.
  socket.once('close', owner.onClose);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      socket.destroy(new Error(`no connection within ${connectTimeoutMs} ms`));
    }, connectTimeoutMs);
    const connected = (ready: net.Socket): void => {
      clearTimeout(timer);
      resolve(ready);
    };
    socket.once('connect', () => {
      if (tls === null || isUnixSocket(server)) return connected(socket);
      startTls(socket, host, tls).then(
        (secured) => {
          secured.once('close', owner.onClose);
          connected(secured);
        },
        (error: Error) => {
          // Before the end of the socket is heard of, which says nothing of the reason.
          reject(error);
          socket.destroy();
        },
      );
    });
    socket.once('error', reject);
    socket.once('close', () => {
      clearTimeout(timer);
      // TLS may say why in the same turn.
      setImmediate(() => reject(new Error('the connection was closed')));
    });
  });
}

/**
 * From here on who listens for the end of a socket hears of it when `clientEnded` resolves, which is asked for then. The library
 * takes statements for a moment after it has heard, since it rolls back what it has just failed itself, and writes them
 * to no socket in a later turn: an exception that nobody can catch, which ended the whole process.
 */
export function delayCloseEvents(socket: net.Socket, clientEnded: () => Promise<unknown>): void {
  const on = socket.on.bind(socket) as (event: string, listener: (...args: unknown[]) => void) => net.Socket;
  socket.on = ((event: string, listener: (...args: unknown[]) => void) =>
    on(
      event,
      event === 'close' ? (...args) => void clientEnded().then(() => listener(...args)) : listener,
    )) as typeof socket.on;
}

/**
 * Runs something synchronous as another user. What the pool of threads does meanwhile is done as that user too: the
 * caller sees to it that no files are under way.
 */
function withEffectiveUid<T>(uid: number | undefined, work: () => T): T {
  const own = process.geteuid?.();
  if (uid === undefined || own === undefined || uid === own) return work();
  process.seteuid?.(uid);
  try {
    return work();
  } finally {
    process.seteuid?.(own);
  }
}
