import type postgres from 'postgres';
import type { DatabaseTlsConfig } from '../../config/services.ts';

/** A client of the postgres library with one connection. */
export type Sql = postgres.Sql<{ bigint: number }>;
/** The address of a PostgreSQL server. `host` is a name, an IP address, or the folder of a Unix socket. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** The address of PostgreSQL, and Klatch's login there. */
export interface ConnectionTarget extends ServerAddress {
  /**
   * The other servers of the same cluster (a primary and its standbys); Klatch tries them in turn to find the primary.
   */
  readonly otherHosts?: readonly ServerAddress[];
  /** Null, or left out: without TLS. */
  readonly tls?: DatabaseTlsConfig | null;
  readonly database: string;
  readonly user: string;
  readonly password: string;
  /** The time-out of the connect to each server. */
  readonly connectTimeoutMs: number;
  readonly lockTimeoutMs: number;
}
