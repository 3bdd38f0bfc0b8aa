import type { ServerAddress } from '../core/address.ts';
import type { ConnectFunction } from '../core/connection.ts';
import { LineConnection } from './line-connection.ts';
import { WsConnection } from './ws-connection.ts';

/** The way in which clients in Node connect to a server. */
export function connectFunctionFor(address: ServerAddress): ConnectFunction {
  const transport = address.transport === 'frames' ? WsConnection : LineConnection;
  return (callbacks, bounds) => transport.open(address, callbacks, bounds);
}
