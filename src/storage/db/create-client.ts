import type net from 'node:net';
import postgres from 'postgres';
import { driverArrayTypes } from './array-types.ts';
import type { ConnectionTarget, ServerAddress, Sql } from './connection-target.ts';

/** Callbacks of the owner of a client's session. */
interface ClientEvents {
  readonly openSocket: () => Promise<net.Socket>;
  /** Called with a notification of a channel that the session listens to. */
  readonly onNotify: (payload: string) => void;
  /** Called with a setting that PostgreSQL reports, at the start and whenever it changes. */
  readonly onParameter: (name: string, value: string) => void;
  /**
   * Called when a commit did not wait for a standby to the end, because the wait was cancelled: PostgreSQL sends a
   * warning, and then reports success.
   */
  readonly onCommittedWithoutStandby: () => void;
}

/**
 * The function in PostgreSQL's source that warns of a commit that did not wait for a standby. The text of the warning
 * depends on the server's language.
 */
const STANDBY_WAIT_ROUTINE = 'SyncRepWaitForLSN';

/** A client of the postgres library for one session; it connects with its first statement. */
export function createClient(
  { database, user, password, connectTimeoutMs }: ConnectionTarget,
  { host, port }: ServerAddress,
  sessionName: string,
  events: ClientEvents,
): Sql {
  return postgres({
    host,
    port,
    database,
    user,
    password,
    max: 1,
    connect_timeout: connectTimeoutMs / 1000,
    // By default the library ends a connection after half an hour to an hour, even between two queries of one call.
    max_lifetime: null,
    idle_timeout: 0,
    onnotice: (notice: postgres.Notice) => {
      if (notice['routine'] === STANDBY_WAIT_ROUTINE) events.onCommittedWithoutStandby();
    },
    onnotify: (_channel: string, payload: string) => events.onNotify(payload),
    onparameter: events.onParameter,
    socket: events.openSocket,
    fetch_types: false,
    types: { bigint: { to: 20, from: [20], serialize: String, parse: parseBigint }, ...driverArrayTypes() },
    // The first query of the session makes further settings (`configureSessionAndReadState`).
    connection: {
      application_name: `klatch ${sessionName}`,
      TimeZone: 'UTC',
    },
  } as postgres.Options<{ bigint: postgres.PostgresType<number> }>);
}

function parseBigint(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('a bigint of the database is beyond 2^53');
  return value;
}
