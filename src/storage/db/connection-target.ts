import type postgres from 'postgres';
import type { DatabaseTlsConfig } from '../../config/config.ts';

/** A client of one connection; statements take this or a transaction of it. */
export type Sql = postgres.Sql<{ bigint: number }>;
/** Where a server of PostgreSQL listens. `host` is a name, an address, or the folder of a Unix socket. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** Where PostgreSQL listens and who we are to it. */
export interface ConnectionTarget extends ServerAddress {
  /** The other servers of its cluster; the one that is the primary is found by asking them in turn. */
  readonly otherHosts?: readonly ServerAddress[];
  /** Null, or left out: without TLS. */
  readonly tls?: DatabaseTlsConfig | null;
  readonly database: string;
  readonly user: string;
  readonly password: string;
  /** For each server. */
  readonly connectTimeoutMs: number;
  readonly lockTimeoutMs: number;
}
