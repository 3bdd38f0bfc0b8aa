import net from 'node:net';
import type { DatabaseTlsConfig } from '../../config/services.ts';
import type { ServerAddress } from './connection-target.ts';
import { startTls } from './tls.ts';

interface SocketOptions {
  readonly connectTimeoutMs: number;
  /**
   * Root only: the user that PostgreSQL sees at the other end of a Unix socket, see `ConnectionOptions`. Undefined: the
   * user of this process.
   */
  readonly connectAsUid: number | undefined;
  /** Null: no TLS. A Unix socket never has TLS. */
  readonly tls: DatabaseTlsConfig | null;
}

/** The session that a socket is opened for. The session gets the socket before any event of the socket. */
interface SessionSocketCallbacks {
  readonly onSocketCreated: (socket: net.Socket) => void;
  readonly onClose: () => void;
}

export function isUnixSocket({ host }: ServerAddress): boolean {
  return host.startsWith('/');
}

/**
 * Connects to a server; resolves once it is connected, with TLS where the target asks for it. The owner gets the plain
 * socket: destroying it ends TLS as well, and only a plain socket can be reset.
 */
export function openSocket(
  server: ServerAddress,
  options: SocketOptions,
  callbacks: SessionSocketCallbacks,
): Promise<net.Socket> {
  const { host, port } = server;
  const { connectTimeoutMs, connectAsUid, tls } = options;
  const socket = isUnixSocket(server)
    ? withEffectiveUid(connectAsUid, () => net.connect({ path: `${host}/.s.PGSQL.${port}` }))
    : net.connect({ host, port, keepAlive: true, noDelay: true });
  callbacks.onSocketCreated(socket);
  // The owner's listener is the first, so the session is marked as ended before the library rejects its work.
  socket.once('close', callbacks.onClose);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      socket.destroy(new Error(`no connection within ${connectTimeoutMs} ms`));
    }, connectTimeoutMs);
    const onConnected = (readySocket: net.Socket): void => {
      clearTimeout(timer);
      resolve(readySocket);
    };
    socket.once('connect', () => {
      if (tls === null || isUnixSocket(server)) return onConnected(socket);
      startTls(socket, host, tls).then(
        (tlsSocket) => {
          tlsSocket.once('close', callbacks.onClose);
          onConnected(tlsSocket);
        },
        (error: Error) => {
          // Rejects before it destroys the socket: the `close` event that follows carries no reason.
          reject(error);
          socket.destroy();
        },
      );
    });
    socket.once('error', reject);
    socket.once('close', () => {
      clearTimeout(timer);
      // TLS may report the reason in the same turn of the event loop, and then rejects first.
      setImmediate(() => reject(new Error('the connection was closed')));
    });
  });
}

/**
 * Delays `close` events of a socket: calls `clientEnded` at the event, and passes the event on when its promise
 * resolves. After a `close` the library still takes statements for a moment: it rolls back the transaction that has
 * just failed. It writes them to a closed socket, in a later turn. No code can catch that exception, and it ended the
 * whole process.
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
 * Runs a synchronous function as another user. The thread pool also works as that user meanwhile: the caller has to
 * ensure that no file operations are in progress.
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
