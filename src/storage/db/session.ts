import type net from 'node:net';
import type { Sql } from './connection-target.ts';
import type { TimelineAndSystemId } from './server-group.ts';

/** A client of the postgres library, with the one socket that it ever gets. */
export interface Session {
  readonly client: Sql;
  /** The index of the session's server in the group. */
  readonly serverIndex: number;
  /** The pid of the server process; 0 before the session was greeted. */
  pid: number;
  /** The server's report about the cluster; null before the session was greeted. */
  state: TimelineAndSystemId | null;
  socket: net.Socket | null;
  ready: boolean;
  ended: boolean;
  /** The count of lost sessions (`ServerGroup.lostSessionCount`) when this session was last greeted. */
  knownLosses: number;
  /** The server reported that it no longer takes writes: the session is closed after the work in progress. */
  becameReadOnly: boolean;
  hasWorkInProgress: boolean;
  /** PostgreSQL has committed without the standby that it should have waited for. */
  wasCommittedWithoutStandby: boolean;
  /** The server's last message reports a shutdown (57P01). */
  isServerShuttingDown: boolean;
  /** After the session has ended: resolves when the postgres library knows of the end and refuses every statement. */
  clientEnded: Promise<unknown>;
}
