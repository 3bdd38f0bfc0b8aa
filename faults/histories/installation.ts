import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hashSessionToken, newSessionToken } from '../../src/operations/core/session-cache.ts';
import type { AccountId } from '../../src/model/ids.ts';
import { insertSessionOrToken } from '../../src/storage/accounts/sessions.ts';
import type { Sql } from '../../src/storage/db/connection.ts';
import { Pool } from '../../src/storage/db/pool.ts';
import { SUPERUSER } from '../../src/storage/embedded/cluster.ts';
import { APP_DATABASE, APP_DATABASE_ROLE } from '../../src/storage/embedded/readiness.ts';
import {
  EVENT_RETENTION_MS,
  MAX_EVENTS_PER_CONVERSATION,
  removeExpiredEvents,
} from '../../src/storage/hooks/event-expiry.ts';
import { callAs } from '../../test/support/call.ts';
import { eventually } from '../../test/support/eventually.ts';
import { LAUNCHER } from '../../test/support/program-files.ts';
import { ServerProcess } from '../../test/support/server-process.ts';
import type { CleanUp } from '../clean-up.ts';
import { OwnDatabase } from '../own-database.ts';

const run = promisify(execFile);

/**
 * With these settings the server retries failures at once, no limit slows a caller down, and calls wait for a slow
 * database.
 */
const SETTINGS = `
  limits {
    token-rate = 100000, token-burst = 100000, session-rate = 10000, session-burst = 10000, parse-time = 1m
    hook-registrations-per-minute = 10000, hook-changes-per-minute = 10000, intake-timeout = 1m
  }
  services.postgresql { connect-timeout = 1m, query-timeout = 2m, flush-timeout = 1m, lock-timeout = 50s }
  delivery.retry = [20ms, 40ms, 60ms]
  log.level = warn`;
/** Only a hang exceeds this time. */
const CALL_TIMEOUT_MS = 120_000;

/** An account that sends messages into a group. */
export interface Author {
  readonly nick: string;
  readonly token: string;
}

/** A server process on a PostgreSQL of its own. The methods do what an administrator or a background job does. */
export class Installation {
  readonly server: ServerProcess;
  readonly #database: OwnDatabase;
  #pool: Pool;
  #expiry: Promise<unknown> = Promise.resolve();

  private constructor(server: ServerProcess, database: OwnDatabase) {
    this.server = server;
    this.#database = database;
    this.#pool = this.#open(APP_DATABASE);
  }

  static async start(cleanUp: CleanUp): Promise<Installation> {
    const database = await OwnDatabase.start(cleanUp);
    const server = await ServerProcess.create(`${SETTINGS}\n${database.settings()}`);
    await cleanUp.add('server', () => server.discard());
    await server.start();
    const installation = new Installation(server, database);
    await cleanUp.add('connections', () => installation.#pool.stop());
    return installation;
  }

  query<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#pool.run(work);
  }

  /** Creates a person with a session, and a bot of that person with a token. */
  async createAuthors(name: string): Promise<{ readonly user: Author; readonly bot: Author }> {
    const { id } = await this.server.operate<{ id: number }>('accounts.create', { nick: name, name });
    const { token } = newSessionToken('user');
    const session = { accountId: id as AccountId, tokenHash: hashSessionToken(token), label: 'faults' };
    await this.query((sql) => insertSessionOrToken(sql, { ...session, scopes: null, expiresAt: null }));
    const user = { nick: name, token };
    const bot = await callAs<{ nick: string }>(this.server, user, 'bots.create', { nick: `${name}-bot` });
    const input = { bot: bot.nick, scopes: ['messages:read', 'messages:write'], label: 'faults' };
    const made = await callAs<{ token: string }>(this.server, user, 'tokens.create', input);
    return { user, bot: { nick: bot.nick, token: made.token } };
  }

  /** The current log epoch: the server stamps new changes with it. */
  async logEpoch(): Promise<number> {
    const [row] = await this.query(
      (sql) => sql<{ value: string }[]>`select value from setting where name = 'log_epoch'`,
    );
    return Number(row?.value ?? 0);
  }

  /** Removes the messages before `firstSeq`, as a retention rule does. */
  async removeMessagesBefore(group: number, firstSeq: number): Promise<void> {
    await this.query((sql) =>
      sql.begin(async (tx) => {
        await tx`update conversation_head set first_seq = ${firstSeq} where conversation_id = ${group}`;
        await tx`delete from message where conversation_id = ${group} and seq < ${firstSeq}`;
      }),
    );
    await this.#announce(group);
  }

  /**
   * Makes the events of a group 8 days older, and runs the job that removes expired events. Resolves with the rev of
   * the newest of them; 0 if there was none.
   */
  expireEvents(group: number): Promise<number> {
    // Only one expiry runs at a time: each removes the expired events of all groups, also those that another expiry has
    // just made older.
    const expiry = this.#expiry.then(async () => {
      const [last] = await this.query(
        (sql) => sql<{ rev: number }[]>`
          with aged as (
            update hook_event set at = at - interval '8 days' where conversation_id = ${group} returning rev)
          select coalesce(max(rev), 0) as rev from aged`,
      );
      const before = new Date(Date.now() - EVENT_RETENTION_MS);
      const beforeStep = async (): Promise<void> => {};
      const bounds = {
        writtenBefore: before,
        maxEvents: MAX_EVENTS_PER_CONVERSATION,
        beforeStep,
        onEventsLost: () => {},
      };
      await removeExpiredEvents(this.#pool, bounds);
      await this.#announce(group);
      return last!.rev;
    });
    this.#expiry = expiry.catch(() => {});
    return expiry;
  }

  async kill(): Promise<void> {
    await this.server.end('SIGKILL');
  }

  /** Ends the server by SIGTERM. Rejects if its exit status is not 0. */
  async stop(): Promise<void> {
    const code = await this.server.end('SIGTERM');
    if (code !== 0) throw new Error(`the server was asked to stop and ended with ${code}`);
  }

  /**
   * Resolves when the database has ended the sessions of a server that has ended. Until then their statements may still
   * commit.
   */
  async sessionsEnded(): Promise<void> {
    await eventually(
      () =>
        this.query(
          (sql) => sql<{ count: number }[]>`
            select count(*)::int as count from pg_stat_activity where usename = ${APP_DATABASE_ROLE}`,
        ),
      ([row]) => row!.count === 0,
    );
  }

  async backUp(): Promise<void> {
    await this.#klatch('backup', '--force', this.#backupFile);
  }

  /** Loads the backup into a new database that replaces the old one; the server must not run. */
  async restore(): Promise<void> {
    this.#pool.stop();
    const admin = this.#open('postgres');
    await admin.run((sql) => sql`drop database ${sql(APP_DATABASE)} with (force)`);
    await admin.run(
      (sql) =>
        sql`create database ${sql(APP_DATABASE)} owner ${sql(APP_DATABASE_ROLE)} template template0 encoding 'UTF8'`,
    );
    admin.stop();
    await this.#klatch('restore', this.#backupFile);
    this.#pool = this.#open(APP_DATABASE);
  }

  get #backupFile(): string {
    return join(this.server.dataDir, 'histories.tar.gz');
  }

  async #klatch(command: string, ...args: string[]): Promise<void> {
    const config = join(this.server.dataDir, 'server.conf');
    await run(LAUNCHER, [command, '--config', config, ...args], { timeout: CALL_TIMEOUT_MS });
  }

  /** Notifies the nodes that the group's hooks have changed, as the job that removed something does. */
  async #announce(group: number): Promise<void> {
    await this.query((sql) => sql`select pg_notify('klatch', ${`histories h${group}`})`);
  }

  #open(database: string): Pool {
    const target = { ...this.#database.place, database, user: SUPERUSER, password: '' };
    return new Pool(
      { ...target, connectTimeoutMs: CALL_TIMEOUT_MS, lockTimeoutMs: CALL_TIMEOUT_MS },
      { name: 'histories', maxConnections: 4, maxWaitingCalls: 1_000, timeoutMs: CALL_TIMEOUT_MS },
    );
  }
}
