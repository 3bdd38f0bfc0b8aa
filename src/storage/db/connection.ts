import net from 'node:net';
import postgres from 'postgres';
import { driverArrayTypes } from './array-types.ts';
import { DatabaseUnavailableError, CommitUnknownError, isConnectionFatal, sqlState } from './database-error.ts';

/** A client of one connection; statements take this or a transaction of it. */
export type Sql = postgres.Sql<{ bigint: number }>;
export type Transaction = postgres.TransactionSql<{ bigint: number }>;
/** A piece of a statement, with its values. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>;

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

interface ConnectionOptions {
  /** True: statements are planned once, for any values. For sessions whose few statements are known to suffer none. */
  readonly forceGenericPlans?: boolean;
  /** A notification of a channel this session listens to. */
  readonly onNotify?: (payload: string) => void;
  /** The session ended, whoever ended it. */
  readonly onClose?: () => void;
  /**
   * Root only: whom PostgreSQL sees at the other end of a Unix socket, for peer authentication. The kernel notes the
   * effective user in the moment of the connect, which Node makes before it returns; we are root again right after.
   */
  readonly connectAsUid?: number;
}

/** What servers before 9.6 refuse our sessions with: they do not know a setting that each begins with. */
export const UNKNOWN_SETTING_SQLSTATE = '42704';

/** A client of the library with the one socket it ever gets. */
interface Session {
  readonly client: Sql;
  socket: net.Socket | null;
  ready: boolean;
  ended: boolean;
  /** Once it has ended: when the library knows, and refuses every statement. */
  clientEnded: Promise<unknown>;
}

/**
 * One session with PostgreSQL, opened when it is first needed and again after it was lost.
 *
 * A deadline really ends what it bounds: it destroys the socket, since neither `statement_timeout` nor a cancel request
 * gets through a path that swallows packets. The postgres library would reconnect by itself, with queries kept for
 * later; we never let it: a lost client is thrown away and gets no second socket, so that nothing is sent after its
 * caller was told of a failure.
 */
export class Connection {
  readonly #target: ConnectionTarget;
  readonly #name: string;
  readonly #options: ConnectionOptions;
  #session: Session | null = null;

  constructor(target: ConnectionTarget, name: string, options: ConnectionOptions = {}) {
    this.#target = target;
    this.#name = name;
    this.#options = options;
  }

  /** True while a session is open and has answered. */
  get ready(): boolean {
    return this.#session?.ready === true;
  }

  /**
   * Runs `work` on this session, one at a time (the caller sees to that). Rejects with DatabaseUnavailableError when no session
   * could be had, with CommitUnknownError when it ended or `timeoutMs` passed in between, else with what `work` rejects.
   */
  async run<T>(work: (sql: Sql) => Promise<T>, timeoutMs: number): Promise<T> {
    const session = (this.#session ??= this.#open());
    let timer: NodeJS.Timeout | undefined;
    let sent = false;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.#end(session, 'reset');
        const message = `no answer from the database within ${Math.round(timeoutMs)} ms`;
        reject(sent ? new CommitUnknownError(message) : new DatabaseUnavailableError(message));
      }, timeoutMs);
    });
    const attempt = async (): Promise<T> => {
      if (!session.ready) await this.#connectAndApplySettings(session);
      sent = true;
      return work(session.client);
    };
    const running = attempt();
    // After the deadline nobody waits for the work any more; its late rejection is the same failure told twice.
    running.catch(() => {});
    try {
      return await Promise.race([running, deadline]);
    } catch (error) {
      throw this.#endOnConnectionLoss(session, error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends the session at once, without waiting for what is under way. */
  close(): void {
    if (this.#session !== null) this.#end(this.#session);
  }

  /** Ends this session and no other: what was under way on it may find out only when there is a new one. */
  #end(session: Session, how: 'close' | 'reset' = 'close'): void {
    if (session.ended) return;
    session.ended = true;
    session.ready = false;
    if (this.#session === session) this.#session = null;
    const { socket, client } = session;
    // A plain close leaves what was not acknowledged to the kernel, which would still deliver it when the path heals.
    if (how === 'reset' && socket !== null && !socket.connecting && !this.#usesUnixSocket) socket.resetAndDestroy();
    else socket?.destroy();
    // It rejects what is under way and queued in the library.
    session.clientEnded = client.end({ timeout: 0 }).catch(() => {});
    this.#options.onClose?.();
  }

  get #usesUnixSocket(): boolean {
    return this.#target.host.startsWith('/');
  }

  /** One round trip before the first work of a session, so that a failure to connect is told apart from a lost commit. */
  async #connectAndApplySettings(session: Session): Promise<void> {
    try {
      // PostgreSQL would plan a statement for each length of its arrays: a third of a small flush. The name is looked up
      // because version 11 has no such setting.
      // A commit that is answered before it is on disk can be lost in a crash: what the database, the role or a reload
      // says is overruled. Transactions that write what can be derived again turn it off for themselves.
      await session.client`
        select set_config(name, case
            when name = 'plan_cache_mode' then 'force_generic_plan'
            when setting in ('off', 'local') then 'on'
            else setting
          end, false)
        from pg_settings
        where name = 'synchronous_commit' or (name = 'plan_cache_mode' and ${this.#options.forceGenericPlans === true})`;
    } catch (error) {
      this.#end(session);
      throw new DatabaseUnavailableError(`cannot connect to the database: ${reason(error)}`, { cause: error });
    }
    if (session.ended) throw new DatabaseUnavailableError('the connection to the database was closed');
    session.ready = true;
  }

  #open(): Session {
    const { host, port, database, user, password, connectTimeoutMs, lockTimeoutMs } = this.#target;
    const openSocket = (): Promise<net.Socket> => this.#openSocket(session);
    const client = postgres({
      host,
      port,
      database,
      user,
      password,
      max: 1,
      connect_timeout: connectTimeoutMs / 1000,
      // By default the library ends a connection after half an hour to an hour, also between two queries of one work.
      max_lifetime: null,
      idle_timeout: 0,
      onnotice: () => {},
      onnotify: (_channel: string, payload: string) => this.#options.onNotify?.(payload),
      socket: openSocket,
      fetch_types: false,
      types: { bigint: { to: 20, from: [20], serialize: String, parse: parseBigint }, ...driverArrayTypes() },
      connection: {
        application_name: `klatch ${this.#name}`,
        lock_timeout: lockTimeoutMs,
        idle_in_transaction_session_timeout: 30_000,
        default_transaction_isolation: 'read committed',
        TimeZone: 'UTC',
      },
    } as postgres.Options<{ bigint: postgres.PostgresType<number> }>) as unknown as Sql;
    const session: Session = { client, socket: null, ready: false, ended: false, clientEnded: Promise.resolve() };
    return session;
  }

  async #openSocket(session: Session): Promise<net.Socket> {
    // The library asks again when a socket ended in the middle of the greeting, and asks late when it was closed at once.
    if (session.ended || session.socket !== null) throw new Error('the connection was closed');
    const { host, port, connectTimeoutMs } = this.#target;
    const socket = this.#usesUnixSocket
      ? withEffectiveUid(this.#options.connectAsUid, () => net.connect({ path: `${host}/.s.PGSQL.${port}` }))
      : net.connect({ host, port, keepAlive: true, noDelay: true });
    session.socket = socket;
    // Ours is the first listener, so the session is marked as gone before the library rejects what was under way.
    socket.once('close', () => this.#end(session));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        socket.destroy(new Error(`no connection within ${connectTimeoutMs} ms`));
      }, connectTimeoutMs);
      socket.once('connect', () => {
        clearTimeout(timer);
        delayCloseEvents(socket, () => session.clientEnded);
        resolve(socket);
      });
      socket.once('error', reject);
      socket.once('close', () => {
        clearTimeout(timer);
        reject(new Error('the connection was closed'));
      });
    });
  }

  #endOnConnectionLoss(session: Session, error: unknown): unknown {
    const explained = toCommitUnknownError(error);
    if (explained !== error) this.#end(session);
    return explained;
  }
}

/**
 * From here on who listens for the end of a socket hears of it when `clientEnded` resolves, which is asked for then. The library
 * takes statements for a moment after it has heard, since it rolls back what it has just failed itself, and writes them
 * to no socket in a later turn: an exception that nobody can catch, which ended the whole process.
 */
function delayCloseEvents(socket: net.Socket, clientEnded: () => Promise<unknown>): void {
  const on = socket.on.bind(socket) as (event: string, listener: (...args: unknown[]) => void) => net.Socket;
  socket.on = ((event: string, listener: (...args: unknown[]) => void) =>
    on(
      event,
      event === 'close' ? (...args) => void clientEnded().then(() => listener(...args)) : listener,
    )) as typeof socket.on;
}

/**
 * Runs something synchronous as another user. What the pool of threads does meanwhile is done as that user too: the
 * caller sees to it that no files are under way.
 */
function withEffectiveUid<T>(uid: number | undefined, work: () => T): T {
  const own = process.geteuid?.();
  if (uid === undefined || own === undefined || uid === own) return work();
  process.seteuid?.(uid);
  try {
    return work();
  } finally {
    process.seteuid?.(own);
  }
}

/** CommitUnknownError for what a connection that ended leaves its statements and streams with; every other error as it is. */
export function toCommitUnknownError(error: unknown): unknown {
  if (error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError) return error;
  if (!isConnectionFatal(error) && !isConnectionError(error)) return error;
  return new CommitUnknownError(`the connection to the database was lost: ${reason(error)}`, { cause: error });
}

function isConnectionError(error: unknown): boolean {
  // By its code alone: an error of Node's own is no Error of ours inside a context of its own, as of the tests.
  const code = (error as { readonly code?: unknown } | null)?.code;
  if (typeof code !== 'string' || sqlState(error) !== null) return false;
  return code.startsWith('CONNECTION_') || code === 'CONNECT_TIMEOUT' || /^E[A-Z]+$/.test(code);
}

function reason(error: unknown): string {
  if (sqlState(error) === UNKNOWN_SETTING_SQLSTATE) return 'this PostgreSQL is too old: Klatch needs 11 or newer';
  if (!(error instanceof Error)) return 'no reason given';
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'CONNECT_TIMEOUT') return 'it took the connection and did not answer';
  return error.message === '' ? (code ?? error.name) : error.message;
}

function parseBigint(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('a bigint of the database is beyond 2^53');
  return value;
}
