import type { AddressInfo, Server } from 'node:net';
import type { ConnectionLimit } from './connection-limit.ts';
import { describePortHolder, findPortHolder } from './port-holder.ts';

const BACKLOG = 1_024;

/** Thrown when the server cannot listen on a port. The message has the port and says what to do. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/**
 * Makes a server listen on a port, and resolves to the port. `configKeys`: the configuration keys that set the port,
 * for error messages. `limit` bounds the server's connections. Rejects with ListenError.
 */
export async function listen(
  server: Server,
  { host, port, keys: configKeys, limit }: { host: string; port: number; keys: string; limit: ConnectionLimit },
): Promise<number> {
  limit.watch(server);
  const failure = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
    server.once('error', resolve);
    server.listen({ host, port, backlog: BACKLOG }, () => {
      server.off('error', resolve);
      resolve(null);
    });
  });
  if (failure === null) {
    // A later error is about one connection that could not be accepted, for instance because of too many open files.
    // Without a handler it would end the process.
    server.on('error', () => {});
    return (server.address() as AddressInfo).port;
  }
  throw toListenError(failure, `${host}:${port} (${configKeys})`, describePortHolder(await findPortHolder(host, port)));
}

function toListenError(error: NodeJS.ErrnoException, endpoint: string, portHolder: string): ListenError {
  if (error.code === 'EADDRINUSE')
    return new ListenError(`another program listens on ${endpoint}${portHolder}. Stop it or choose another port.`);
  if (error.code === 'EACCES')
    return new ListenError(`listening on ${endpoint} needs more rights: choose a port above 1023`);
  if (error.code === 'EADDRNOTAVAIL') return new ListenError(`this machine has no address ${endpoint}`);
  return new ListenError(`cannot listen on ${endpoint}: ${error.message}`);
}
