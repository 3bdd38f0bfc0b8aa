import type net from 'node:net';
import type { Sql } from './connection-target.ts';
import type { TimelineAndSystemId } from './server-group.ts';

/** A client of the library with the one socket it ever gets. */
export interface Session {
  readonly client: Sql;
  /** Which of the group's servers it is with. */
  readonly serverIndex: number;
  /** The process of the server; 0 before it was greeted. */
  pid: number;
  /** What its server said of the cluster; null before it was greeted. */
  state: TimelineAndSystemId | null;
  socket: net.Socket | null;
  ready: boolean;
  ended: boolean;
  /** The group's losses when it was greeted last. */
  knownLosses: number;
  /** Its server said that it takes no writes any more: it ends with the work that is under way. */
  becameReadOnly: boolean;
  hasWorkInProgress: boolean;
  /** PostgreSQL has committed without the standby that it should have waited for. */
  wasCommittedWithoutStandby: boolean;
  /** The last message of the server says that it stops (57P01). */
  isServerShuttingDown: boolean;
  /** Once it has ended: when the library knows, and refuses every statement. */
  clientEnded: Promise<unknown>;
}
