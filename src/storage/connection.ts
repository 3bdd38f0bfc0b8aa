import net from 'node:net';
import postgres from 'postgres';
import { DatabaseAwayError, DatabaseLostError, endsSession, sqlState } from './database-error.ts';

/** A client of one connection; statements take this or a transaction of it. */
export type Sql = postgres.Sql<{ bigint: number }>;
export type Transaction = postgres.TransactionSql<{ bigint: number }>;

/** Where PostgreSQL listens and who we are to it. `host` is a name, an address, or the folder of a Unix socket. */
export interface ConnectionTarget {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password: string;
  readonly connectTimeoutMs: number;
  readonly lockTimeoutMs: number;
}

export interface ConnectionEvents {
  /** A notification of a channel this session listens to. */
  readonly onNotify?: (payload: string) => void;
  /** The session ended, whoever ended it. */
  readonly onClose?: () => void;
}

/**
 * One session with PostgreSQL, opened when it is first needed and again after it was lost.
 *
 * A deadline really ends what it bounds: it destroys the socket, since neither `statement_timeout` nor a cancel request
 * gets through a path that swallows packets. The postgres library would reconnect by itself, with queries kept for
 * later; we never let it: a lost client is thrown away, so that nothing is sent after its caller was told of a failure.
 */
export class Connection {
  readonly #target: ConnectionTarget;
  readonly #name: string;
  readonly #events: ConnectionEvents;
  #client: Sql | null = null;
  #socket: net.Socket | null = null;
  #ready = false;

  constructor(target: ConnectionTarget, name: string, events: ConnectionEvents = {}) {
    this.#target = target;
    this.#name = name;
    this.#events = events;
  }

  /** True while a session is open and has answered. */
  get ready(): boolean {
    return this.#ready;
  }

  /**
   * Runs `work` on this session, one at a time (the caller sees to that). Rejects with DatabaseAwayError when no session
   * could be had, with DatabaseLostError when it ended or `timeoutMs` passed in between, else with what `work` rejects.
   */
  async run<T>(work: (sql: Sql) => Promise<T>, timeoutMs: number): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let sent = false;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.close();
        const message = `no answer from the database within ${timeoutMs} ms`;
        reject(sent ? new DatabaseLostError(message) : new DatabaseAwayError(message));
      }, timeoutMs);
    });
    const attempt = async (): Promise<T> => {
      const client = this.#client ?? this.#open();
      if (!this.#ready) await this.#greet(client);
      sent = true;
      return work(client);
    };
    const running = attempt();
    // After the deadline nobody waits for the work any more; its late rejection is the same failure told twice.
    running.catch(() => {});
    try {
      return await Promise.race([running, deadline]);
    } catch (error) {
      throw this.#explain(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends the session at once, without waiting for what is under way. */
  close(): void {
    const client = this.#client;
    if (client === null) return;
    this.#client = null;
    this.#ready = false;
    this.#socket?.destroy();
    this.#socket = null;
    // `end` rejects what is still queued in the library; nobody waits for its own promise.
    client.end({ timeout: 0 }).catch(() => {});
    this.#events.onClose?.();
  }

  /** One round trip before the first work of a session, so that a failure to connect is told apart from a lost commit. */
  async #greet(client: Sql): Promise<void> {
    try {
      await client`select 1`;
    } catch (error) {
      this.close();
      throw new DatabaseAwayError(`cannot connect to the database: ${reason(error)}`, { cause: error });
    }
    this.#ready = true;
  }

  #open(): Sql {
    const { host, port, database, user, password, connectTimeoutMs, lockTimeoutMs } = this.#target;
    const client = postgres({
      host,
      port,
      database,
      user,
      password,
      max: 1,
      connect_timeout: Math.max(1, Math.ceil(connectTimeoutMs / 1000)),
      onnotice: () => {},
      onnotify: (_channel: string, payload: string) => this.#events.onNotify?.(payload),
      socket: () => this.#openSocket(),
      types: { bigint: { to: 20, from: [20], serialize: String, parse: parseBigint } },
      connection: {
        application_name: `klatch ${this.#name}`,
        lock_timeout: lockTimeoutMs,
        idle_in_transaction_session_timeout: 30_000,
        default_transaction_isolation: 'read committed',
        TimeZone: 'UTC',
      },
    } as postgres.Options<{ bigint: postgres.PostgresType<number> }>) as unknown as Sql;
    this.#client = client;
    return client;
  }

  async #openSocket(): Promise<net.Socket> {
    const { host, port, connectTimeoutMs } = this.#target;
    const socket = host.startsWith('/')
      ? net.connect({ path: `${host}/.s.PGSQL.${port}` })
      : net.connect({ host, port, keepAlive: true, noDelay: true });
    this.#socket = socket;
    // Ours is the first listener, so the session is marked as gone before the library rejects what was under way.
    socket.once('close', () => {
      if (this.#socket === socket) this.close();
    });
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        socket.destroy();
        reject(new Error(`no connection within ${connectTimeoutMs} ms`));
      }, connectTimeoutMs);
      socket.once('connect', () => {
        clearTimeout(timer);
        resolve(socket);
      });
      socket.once('error', (error) => {
        clearTimeout(timer);
        reject(error);
      });
    });
  }

  #explain(error: unknown): unknown {
    if (error instanceof DatabaseAwayError || error instanceof DatabaseLostError) return error;
    if (endsSession(error) || isConnectionError(error)) {
      this.close();
      return new DatabaseLostError(`the connection to the database was lost: ${reason(error)}`, { cause: error });
    }
    return error;
  }
}

function isConnectionError(error: unknown): boolean {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  if (code === undefined || sqlState(error) !== null) return false;
  return code.startsWith('CONNECTION_') || code === 'CONNECT_TIMEOUT' || /^E[A-Z]+$/.test(code);
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return 'no reason given';
  const code = (error as NodeJS.ErrnoException).code;
  return error.message === '' ? (code ?? error.name) : error.message;
}

function parseBigint(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('a bigint of the database is beyond 2^53');
  return value;
}
