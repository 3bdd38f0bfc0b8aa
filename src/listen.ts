import type { AddressInfo, Server } from 'node:net';
import type { ConnectionLimit } from './connection-limit.ts';
import { describeHolder, findPortHolder } from './port-holder.ts';

const BACKLOG = 1_024;

/** The port cannot be listened on; the message says which and what to do. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/**
 * Opens a server's port and resolves to it. `keys` are those of the configuration that name it, `limit` bounds its
 * connections. Rejects with ListenError.
 */
export async function listen(
  server: Server,
  { host, port, keys, limit }: { host: string; port: number; keys: string; limit: ConnectionLimit },
): Promise<number> {
  limit.watch(server);
  const failed = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
    server.once('error', resolve);
    server.listen({ host, port, backlog: BACKLOG }, () => {
      server.off('error', resolve);
      resolve(null);
    });
  });
  if (failed === null) {
    // Later ones are about one connection that could not be accepted, as with too many open files; nobody would hear
    // them, and that would end the process.
    server.on('error', () => {});
    return (server.address() as AddressInfo).port;
  }
  throw explain(failed, `${host}:${port} (${keys})`, describeHolder(await findPortHolder(host, port)));
}

function explain(error: NodeJS.ErrnoException, place: string, holder: string): ListenError {
  if (error.code === 'EADDRINUSE')
    return new ListenError(`another program listens on ${place}${holder}. Stop it or choose another port.`);
  if (error.code === 'EACCES')
    return new ListenError(`listening on ${place} needs more rights: choose a port above 1023`);
  if (error.code === 'EADDRNOTAVAIL') return new ListenError(`this machine has no address ${place}`);
  return new ListenError(`cannot listen on ${place}: ${error.message}`);
}
