import type { ServerAddress } from '../core/address.ts';
import type { ConnectFunction } from '../core/connection.ts';
import { LineConnection } from './line-connection.ts';
import { WsConnection } from './ws-connection.ts';

/** The function that connects clients in Node to a server. */
export function connectFunctionFor(address: ServerAddress): ConnectFunction {
  const transport = address.transport === 'frames' ? WsConnection : LineConnection;
  return (callbacks, bounds) => transport.open(address, callbacks, bounds);
}
