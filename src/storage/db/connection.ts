import type net from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type postgres from 'postgres';
import { connectionLossToCommitUnknown, greetingErrorText } from './connection-loss.ts';
import type { ConnectionTarget, ServerAddress, Sql } from './connection-target.ts';
import { createClient } from './create-client.ts';
import {
  CommitUnknownError,
  DatabaseUnavailableError,
  READ_ONLY_SQLSTATE,
  ServerShutdownError,
  sqlState,
} from './database-error.ts';
import { configureSessionAndReadState } from './greeting.ts';
import { delayCloseEvents, isUnixSocket, openSocket } from './open-socket.ts';
import { formatServer, ServerGroup } from './server-group.ts';
import type { Session } from './session.ts';
import { endsWithShutdown } from './shutdown-message.ts';
import { AbandonedBackendChecks } from './abandoned-backend-checks.ts';

export type { ConnectionTarget, Sql } from './connection-target.ts';

export type Transaction = postgres.TransactionSql<{ bigint: number }>;
/** A piece of a statement, with its values. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>;

interface ConnectionOptions {
  /**
   * True: PostgreSQL plans each statement once, for any values. This suits sessions whose few statements stay fast with
   * such plans.
   */
  readonly forceGenericPlans?: boolean;
  /** True: if no server takes writes, the connection uses a read-only server. For callers that only read. */
  readonly acceptsReadOnly?: boolean;
  /** True: this session works while other sessions wait for `timelineGate` at the beginning of a new timeline. */
  readonly ignoresTimelineGate?: boolean;
  /** Called with a notification of a channel that this session listens to. */
  readonly onNotify?: (payload: string) => void;
  /** Called when a session that was ready has ended, for any reason. */
  readonly onClose?: () => void;
  /**
   * Root only: the user that PostgreSQL sees at the other end of a Unix socket, for peer authentication. The kernel
   * records the effective user at the moment of the connect, which Node makes before `net.connect` returns. Right after
   * that the process is root again.
   */
  readonly connectAsUid?: number;
}

/** How long an idle session may take to answer a check after another session was lost; then it is closed. */
const SUSPECT_ANSWER_TIMEOUT_MS = 1_000;
const ABANDONED_BACKEND_BUSY_SENTENCE =
  'it still has to commit what it was sent before: it may wait for a standby (synchronous_standby_names) or for its disk';
const ABANDONED_RECHECK_DELAY_MS = 100;
const FORMER_PRIMARY_ERROR = 'a standby was promoted meanwhile, and may lack what the former primary answered';
const COMMITTED_WITHOUT_STANDBY_ERROR =
  'PostgreSQL was told not to wait for its standby, which may lack what was written';
/** Parameters that tell whether a server is read-only; PostgreSQL 14 and newer report their changes to each session. */
const READ_ONLY_PARAMETERS = new Set(['in_hot_standby', 'default_transaction_read_only']);

/** The state of one call of `run`. */
interface RunProgress {
  session: Session | null;
  sent: boolean;
  /** The deadline of the call has passed, or the connection was closed: the call tries no other server. */
  isTimedOutOrClosed: boolean;
  /** The errors of the servers that were tried. */
  readonly rejections: string[];
}

/** Why a server cannot be used. */
interface UnusableServerReason {
  readonly sentence: string;
  readonly isServerReadOnly: boolean;
  readonly cause: unknown;
}

/**
 * One session with PostgreSQL, opened when it is first needed and again after it was lost. If the target has several
 * servers, the session is with the primary.
 *
 * When a deadline passes, the connection destroys the socket, since neither `statement_timeout` nor a cancel request
 * gets through a path that drops packets. On its own, the postgres library would reconnect and send its queued queries.
 * The connection prevents that: it discards a lost client, which gets no second socket. So nothing is sent after the
 * caller got an error.
 */
export class Connection {
  readonly #target: ConnectionTarget;
  readonly #group: ServerGroup;
  readonly #name: string;
  readonly #options: ConnectionOptions;
  #session: Session | null = null;
  #currentOrLastRun: RunProgress | null = null;
  /** The server process that was busy with a request when its session was lost. */
  #abandoned: { readonly pid: number; readonly serverIndex: number } | null = null;
  readonly #abandonedBackendChecks = new AbandonedBackendChecks();

  constructor(target: ConnectionTarget, name: string, options: ConnectionOptions = {}) {
    this.#target = target;
    this.#group = ServerGroup.of(target);
    this.#name = name;
    this.#options = options;
  }

  /** True while a session is open and has answered. */
  get ready(): boolean {
    return this.#session?.ready === true;
  }

  /**
   * True: at the last check the server was still busy with a transaction of the previous session, and the next check is
   * not due yet. The transaction may be a commit that waits for a standby. A backend that waits like this does not read
   * its socket. One more backend for each call would use up the server's connections. So calls are rejected until the
   * next check is due; one call then makes this check.
   */
  get isAwaitingAbandonedBackend(): boolean {
    return this.#abandonedBackendChecks.isTooEarlyToRecheck;
  }

  /**
   * Runs `work` on this session, one at a time (the caller ensures that). Rejects with
   * - DatabaseUnavailableError when nothing was sent, or the server takes no writes,
   * - CommitUnknownError when the session was lost, or `timeoutMs` passed, after `work` had begun; also when the commit
   *   is not safe, because it did not wait for a standby or was made on a former primary,
   * - else with the rejection of `work`.
   */
  async run<T>(work: (sql: Sql) => Promise<T>, timeoutMs: number): Promise<T> {
    if (this.isAwaitingAbandonedBackend)
      throw new DatabaseUnavailableError(this.#abandonedBackendChecks.rejectionMessage);
    const call: RunProgress = { session: null, sent: false, isTimedOutOrClosed: false, rejections: [] };
    this.#currentOrLastRun = call;
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(this.#endAtDeadline(call, timeoutMs)), timeoutMs);
    });
    const attempt = async (): Promise<T> => {
      const session = this.#readySession() ?? (await this.#findPrimary(call));
      call.session = session;
      call.sent = true;
      session.hasWorkInProgress = true;
      session.wasCommittedWithoutStandby = false;
      return work(session.client);
    };
    const running = attempt();
    // After the deadline nobody waits for the work; its late rejection reports the same failure again.
    running.catch(() => {});
    try {
      const result = await Promise.race([running, deadline]);
      if (call.session?.wasCommittedWithoutStandby === true)
        throw new CommitUnknownError(COMMITTED_WITHOUT_STANDBY_ERROR);
      if (this.#group.isFormerPrimary(call.session?.state ?? null)) throw new CommitUnknownError(FORMER_PRIMARY_ERROR);
      return result;
    } catch (error) {
      throw this.#endOnConnectionLoss(call.session, error);
    } finally {
      clearTimeout(timer);
      if (call.session !== null) this.#finishWork(call.session);
    }
  }

  /** Ends the session at once, without waiting for work in progress. */
  close(): void {
    if (this.#currentOrLastRun !== null) this.#currentOrLastRun.isTimedOutOrClosed = true;
    if (this.#session !== null) this.#end(this.#session, { isLoss: false });
  }

  #endAtDeadline(call: RunProgress, timeoutMs: number): Error {
    call.isTimedOutOrClosed = true;
    const { session, sent, rejections } = call;
    if (session !== null) {
      if (!sent) this.#group.markFailed(session.serverIndex, 'it did not answer in time');
      this.#end(session, { how: 'reset' });
    }
    const told = rejections.length === 0 ? '' : ` (${rejections.join('; ')})`;
    const message = `no answer from the database within ${Math.round(timeoutMs)} ms${told}`;
    return sent ? new CommitUnknownError(message) : new DatabaseUnavailableError(message);
  }

  /** Ends this session and no newer one: the work of a lost session may fail only after a new session was opened. */
  #end(session: Session, { how = 'close', isLoss = true }: { how?: 'close' | 'reset'; isLoss?: boolean } = {}): void {
    if (session.ended) return;
    const wasReady = session.ready;
    session.ended = true;
    session.ready = false;
    if (this.#session === session) this.#session = null;
    if (wasReady && isLoss) this.#group.lostSessionCount += 1;
    if (session.hasWorkInProgress && isLoss) this.#abandoned = { pid: session.pid, serverIndex: session.serverIndex };
    const { socket, client } = session;
    const canReset = socket !== null && !socket.connecting && !isUnixSocket(this.#serverOf(session));
    // After a plain close the kernel would still deliver unacknowledged data when the path recovers.
    if (how === 'reset' && canReset) socket.resetAndDestroy();
    else socket?.destroy();
    // Makes the library reject the work in progress and in its queue.
    session.clientEnded = client.end({ timeout: 0 }).catch(() => {});
    if (wasReady) this.#options.onClose?.();
  }

  #finishWork(session: Session): void {
    session.hasWorkInProgress = false;
    if (session.becameReadOnly) this.#end(session);
  }

  #serverOf({ serverIndex }: Session): ServerAddress {
    return this.#group.servers[serverIndex]!;
  }

  /** The open session, if no other session was lost since its last greeting. */
  #readySession(): Session | null {
    const session = this.#session;
    return session?.ready === true && session.knownLosses === this.#group.lostSessionCount ? session : null;
  }

  /** The open session if it still answers as a primary; else a new one with the first server that does. */
  async #findPrimary(call: RunProgress): Promise<Session> {
    const suspect = this.#session;
    if (suspect !== null) {
      call.session = suspect;
      if ((await this.#recheck(suspect)) && !call.isTimedOutOrClosed) return suspect;
      // Opens no new session for an owner that listens: the new one would not listen to the lost one's channel.
      if (this.#options.onNotify !== undefined) {
        throw new DatabaseUnavailableError('the connection to the database was lost');
      }
    }
    let cause: unknown;
    let sawReadOnlyServer = false;
    const passes = this.#options.acceptsReadOnly === true ? [false, true] : [false];
    for (const acceptsReadOnly of passes) {
      if (acceptsReadOnly && !sawReadOnlyServer) break;
      for (const index of this.#group.indexesToTry()) {
        if (call.isTimedOutOrClosed) throw new DatabaseUnavailableError('the connection to the database was closed');
        const session = this.#open(index);
        this.#session = session;
        call.session = session;
        const rejection = await this.#greetNew(session, acceptsReadOnly);
        if (rejection === null) return session;
        ({ cause } = rejection);
        sawReadOnlyServer ||= rejection.isServerReadOnly;
        const server = formatServer(this.#serverOf(session));
        call.rejections.push(
          this.#group.servers.length === 1 ? rejection.sentence : `${server}: ${rejection.sentence}`,
        );
      }
    }
    const { length: count } = this.#group.servers;
    const failureSummary =
      count === 1 ? 'cannot connect to the database' : `none of the ${count} database servers can be used`;
    const message = `${failureSummary}: ${call.rejections.join('; ')}`;
    this.#abandonedBackendChecks.startDelay(message);
    throw new DatabaseUnavailableError(message, { cause });
  }

  /** Checks a session that was idle while another one was lost: its server may be gone, or no longer the primary. */
  async #recheck(session: Session): Promise<boolean> {
    const timer = setTimeout(() => this.#end(session, { how: 'reset', isLoss: false }), SUSPECT_ANSWER_TIMEOUT_MS);
    try {
      if ((await this.#judge(session, this.#options.acceptsReadOnly === true)) === null) return true;
    } catch {
      // The error does not matter: if the server is unusable, opening a new session reports that.
    } finally {
      clearTimeout(timer);
    }
    // This session was lost together with the one whose loss led to this check, so it does not count as another loss.
    // Another loss would make the other sessions check their servers again.
    this.#end(session, { how: 'reset', isLoss: false });
    return false;
  }

  /** Makes one round trip before the first work of a session: this tells a failure to connect from a lost commit. */
  async #greetNew(session: Session, acceptsReadOnly: boolean): Promise<UnusableServerReason | null> {
    let rejection: UnusableServerReason | null;
    try {
      rejection = await this.#judge(session, acceptsReadOnly);
    } catch (error) {
      const sentence = greetingErrorText(error, this.#target, this.#serverOf(session));
      rejection = { sentence, isServerReadOnly: false, cause: error };
    }
    if (rejection === null && session.ended) {
      rejection = { sentence: 'the connection was closed', isServerReadOnly: false, cause: undefined };
    }
    if (rejection !== null) {
      this.#group.markFailed(session.serverIndex, rejection.sentence);
      this.#end(session);
      return rejection;
    }
    this.#group.markPreferred(session.serverIndex);
    session.ready = true;
    return null;
  }

  /** Greets the server; resolves with the reason why it cannot be used, or null. */
  async #judge(session: Session, acceptsReadOnly: boolean): Promise<UnusableServerReason | null> {
    const { lostSessionCount: losses } = this.#group;
    const abandonedPid = this.#abandoned?.serverIndex === session.serverIndex ? this.#abandoned.pid : null;
    const { lockTimeoutMs } = this.#target;
    const options = { forceGenericPlans: this.#options.forceGenericPlans === true, abandonedPid, lockTimeoutMs };
    let greeting = await configureSessionAndReadState(session.client, options);
    if (greeting.isAbandonedBusy) {
      // The backend (server process) of a lost session needs a moment to notice the loss and to end its transaction.
      await wait(ABANDONED_RECHECK_DELAY_MS);
      greeting = await configureSessionAndReadState(session.client, options);
    }
    const reject = (sentence: string): UnusableServerReason => {
      return { sentence, isServerReadOnly: greeting.isReadOnly, cause: undefined };
    };
    if (greeting.isReadOnly && !acceptsReadOnly) {
      return reject(greeting.isStandby ? 'it is a standby, which takes no writes' : 'it is set to take no writes');
    }
    const newer = greeting.isStandby ? null : this.#group.timelineKnownNewerThan(greeting);
    if (newer !== null) {
      return reject(formerPrimarySentence(greeting.timeline, newer));
    }
    if (greeting.isAbandonedBusy) {
      this.#abandonedBackendChecks.recordStillBusy();
      return reject(ABANDONED_BACKEND_BUSY_SENTENCE);
    }
    this.#abandoned = null;
    this.#abandonedBackendChecks.reset();
    session.pid = greeting.pid;
    session.state = greeting;
    session.knownLosses = losses;
    if (greeting.isReadOnly) return null;
    this.#group.recordPrimaryState(greeting);
    if (this.#options.ignoresTimelineGate !== true) await this.#group.timelineGate;
    return null;
  }

  #open(serverIndex: number): Session {
    const client = createClient(this.#target, this.#group.servers[serverIndex]!, this.#name, {
      openSocket: () => this.#openSocket(session),
      onNotify: (payload) => this.#options.onNotify?.(payload),
      onParameter: (name, value) => this.#onParameter(session, name, value),
      onCommittedWithoutStandby: () => (session.wasCommittedWithoutStandby = true),
    });
    const session: Session = {
      client,
      serverIndex,
      socket: null,
      ready: false,
      ended: false,
      knownLosses: this.#group.lostSessionCount,
      becameReadOnly: false,
      hasWorkInProgress: false,
      wasCommittedWithoutStandby: false,
      isServerShuttingDown: false,
      pid: 0,
      state: null,
      clientEnded: Promise.resolve(),
    };
    return session;
  }

  async #openSocket(session: Session): Promise<net.Socket> {
    // The library opens a second socket if the first one ends in the greeting, or the first one only after a close.
    if (session.ended || session.socket !== null) throw new Error('the connection was closed');
    const { connectTimeoutMs, tls = null } = this.#target;
    const options = { connectTimeoutMs, connectAsUid: this.#options.connectAsUid, tls };
    const socket = await openSocket(this.#serverOf(session), options, {
      onSocketCreated: (opened) => (session.socket = opened),
      onClose: () => this.#end(session),
    });
    delayCloseEvents(socket, () => session.clientEnded);
    socket.on('data', (chunk: Buffer) => (session.isServerShuttingDown = endsWithShutdown(chunk)));
    return socket;
  }

  /** Ends a session whose server became read-only, but after the work in progress, whose answer is still to come. */
  #onParameter(session: Session, name: string, value: string): void {
    if (value !== 'on' || !READ_ONLY_PARAMETERS.has(name)) return;
    if (!session.ready || this.#options.acceptsReadOnly === true) return;
    session.becameReadOnly = true;
    if (!session.hasWorkInProgress) this.#end(session);
  }

  #endOnConnectionLoss(session: Session | null, error: unknown): unknown {
    if (session?.wasCommittedWithoutStandby === true && !(error instanceof CommitUnknownError)) {
      return new CommitUnknownError(COMMITTED_WITHOUT_STANDBY_ERROR, { cause: error });
    }
    if (sqlState(error) === READ_ONLY_SQLSTATE && this.#options.acceptsReadOnly !== true) {
      if (session !== null) this.#end(session);
      return new DatabaseUnavailableError('the database takes no writes any more', { cause: error });
    }
    const explained = connectionLossToCommitUnknown(error);
    if (explained !== error && session !== null) this.#end(session);
    if (explained instanceof CommitUnknownError && session?.isServerShuttingDown === true) {
      const cause = new ServerShutdownError('the database server is told to stop', { cause: error });
      return new CommitUnknownError(`the connection to the database was lost: ${cause.message}`, { cause });
    }
    return explained;
  }
}

/**
 * The sentence advises a restart, since a Klatch that just started knows no newer timeline. After the restart Klatch
 * accepts the database as it is, and reports what the database lacks.
 */
function formerPrimarySentence(timeline: number | null, newer: number): string {
  const reason = `it is no longer the primary: it is on timeline ${timeline}, and ${newer} has begun`;
  return `${reason}; if no server of timeline ${newer} is left, restart Klatch, which then says what the database lost`;
}
