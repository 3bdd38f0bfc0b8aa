import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram } from '../../src/storage/embedded/run-program.ts';
import { findPrograms, type PostgresqlPrograms } from '../../src/storage/embedded/programs.ts';
import { Connection, type Sql } from '../../src/storage/db/connection.ts';
import { asAdministrator } from '../../src/storage/provision/administrator.ts';
import type { LocalCluster } from '../../src/storage/provision/clusters.ts';
import { readPasswd, type PasswdEntry } from '../../src/data-dir/passwd.ts';
import { eventually, HANG_MS } from './eventually.ts';
import { freePort } from './ports.ts';

/** A shell script that runs a server until standard input is closed, which also happens when this process is killed. */
const SCRIPT = '"$@" & pid=$!; read -r _; kill -INT "$pid"; wait "$pid"';

/**
 * The operating system user who owns the servers: another user if jest runs as root, which PostgreSQL refuses;
 * otherwise the current one.
 */
export function serverOwner(): PasswdEntry {
  const users = readPasswd();
  const uid = process.geteuid?.() ?? 0;
  const found =
    uid === 0
      ? (users.find(({ name }) => name === 'postgres') ?? users.find(({ name }) => name === 'nobody'))
      : users.find((user) => user.uid === uid);
  if (found === undefined) throw new Error('this user has no name in /etc/passwd');
  return found;
}

/**
 * The programs of one PostgreSQL for each major version on this machine that the owner can run: Debian's, and that of
 * npm.
 */
export async function localPrograms(): Promise<PostgresqlPrograms[]> {
  const { uid, gid } = serverOwner();
  const identity = process.geteuid?.() === 0 ? { uid, gid } : {};
  const all: PostgresqlPrograms[] = [];
  for (const binDir of [null, '/usr/lib/postgresql/15/bin']) {
    const programs = await findPrograms({ binDir, clusterMajor: null, clusterDir: '' }).catch(() => null);
    if (programs === null) continue;
    const runs = await runProgram({ programPath: programs.initdbPath, args: ['--version'], identity }, 10_000).catch(
      () => null,
    );
    if (runs?.exitCode === 0 && all.every(({ major }) => major !== programs.major)) all.push(programs);
  }
  return all;
}

/** A PostgreSQL server with the settings of a distribution: peer authentication on its socket, passwords over TCP. */
export class LocalPostgres {
  readonly folder: string;
  readonly cluster: LocalCluster;
  readonly #child: ChildProcess;

  private constructor(folder: string, cluster: LocalCluster, child: ChildProcess) {
    this.folder = folder;
    this.cluster = cluster;
    this.#child = child;
  }

  static async start(
    programs: PostgresqlPrograms,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<LocalPostgres> {
    const owner = serverOwner();
    const identity = process.geteuid?.() === 0 ? { uid: owner.uid, gid: owner.gid } : {};
    const folder = await mkdtemp(join(tmpdir(), 'klatch-local-'));
    const [data, socketDir] = [join(folder, 'data'), join(folder, 'run')];
    await mkdir(socketDir);
    for (const path of [folder, socketDir]) await chown(path, owner.uid, owner.gid);
    // Every user may open the socket, as that of a distribution's PostgreSQL.
    await chmod(folder, 0o711);
    const auth = ['--auth-local=peer', '--auth-host=scram-sha-256'];
    const args = ['-D', data, '-U', owner.name, ...auth, '--encoding=UTF8', '--locale=C', '--no-sync'];
    const made = await runProgram({ programPath: programs.initdbPath, args, identity }, HANG_MS);
    if (made.exitCode !== 0) throw new Error(made.stderr);
    const port = await freePort();
    const all = {
      fsync: 'off',
      log_statement: 'all',
      unix_socket_directories: socketDir,
      port: String(port),
      ...settings,
    };
    const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const log = await open(join(folder, 'server.log'), 'a');
    const child = spawn('/bin/sh', ['-c', SCRIPT, 'sh', programs.postgresPath, '-D', data, ...options], {
      ...identity,
      cwd: '/',
      stdio: ['pipe', 'ignore', log.fd],
    });
    await log.close();
    const hbaFile = join(data, 'pg_hba.conf');
    const server = new LocalPostgres(
      folder,
      { name: null, socketDir, port, socketOwnerUid: owner.uid, hbaFile },
      child,
    );
    const answers = server.administer.bind(server, async (sql: Sql) => sql`select 1`);
    await eventually(
      () =>
        answers().then(
          () => 'answers',
          (error: Error) => error.message,
        ),
      (answer) => answer === 'answers',
    );
    return server;
  }

  /** Runs statements as the superuser. */
  async administer<T>(work: (sql: Sql) => Promise<T>, database = 'postgres'): Promise<T> {
    return asAdministrator(this.cluster, database, work);
  }

  /** Runs statements as a role with a password. */
  async login<T>(user: string, password: string, database: string, work: (sql: Sql) => Promise<T>): Promise<T> {
    const place = { host: '127.0.0.1', port: this.cluster.port, connectTimeoutMs: 2_000, lockTimeoutMs: 1_000 };
    const connection = new Connection({ ...place, user, password, database }, 'test');
    try {
      return await connection.run(work, 10_000);
    } finally {
      connection.close();
    }
  }

  async log(): Promise<string> {
    return readFile(join(this.folder, 'server.log'), 'utf8');
  }

  /** Replaces the rules of pg_hba.conf. Resolves when they are in force. */
  async setRules(rules: readonly string[]): Promise<void> {
    await writeFile(this.cluster.hbaFile!, `${rules.join('\n')}\n`);
    await this.administer(async (sql) => {
      const loadedAt = async (): Promise<string> => {
        const [row] = await sql<{ at: string }[]>`select pg_conf_load_time()::text as at`;
        return row!.at;
      };
      const before = await loadedAt();
      await sql`select pg_reload_conf()`;
      await eventually(loadedAt, (at) => at !== before);
    });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.stdin!.end();
      await ended;
    }
    await rm(this.folder, { recursive: true, force: true });
  }
}
