import type { ServerAddress } from '../core/address.ts';
import type { Connect } from '../core/connection.ts';
import { LineConnection } from './line-connection.ts';
import { WsConnection } from './ws-connection.ts';

/** The way in which clients in Node connect to a server. */
export function connectTo(address: ServerAddress): Connect {
  const transport = address.transport === 'frames' ? WsConnection : LineConnection;
  return (events, bounds) => transport.open(address, events, bounds);
}
