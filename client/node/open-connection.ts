import type { ServerAddress } from '../core/address.ts';
import type { Connection, ConnectionBounds, ConnectionEvents } from '../core/connection.ts';
import { LineConnection } from './line-connection.ts';
import { WsConnection } from './ws-connection.ts';

/** Connects. Rejects with ConnectionError, whose sentence names the address. */
export async function openConnection(
  address: ServerAddress,
  events: ConnectionEvents,
  bounds: ConnectionBounds,
): Promise<Connection> {
  const driver = address.transport === 'frames' ? WsConnection : LineConnection;
  return driver.open(address, events, bounds);
}
