import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, chown, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../src/log.ts';
import { Database } from '../../src/storage/database.ts';
import { Connection, type ConnectionTarget, type Sql } from '../../src/storage/db/connection.ts';
import { migrate } from '../../src/storage/db/migrate.ts';
import { Pool } from '../../src/storage/db/pool.ts';
import type { PostgresqlPrograms } from '../../src/storage/embedded/programs.ts';
import { runProgram } from '../../src/storage/embedded/run-program.ts';
import { postgresqlConfig } from './config.ts';
import { type TestDatabase } from './database.ts';
import { eventually, HANG_MS } from './eventually.ts';
import { localPrograms, serverOwner } from './local-postgres.ts';
import { freePort } from './ports.ts';

/** A shell script that runs a server until standard input is closed, which also happens when this process is killed. */
const SCRIPT = '"$@" & pid=$!; read -r _; kill -INT "$pid"; wait "$pid"';
const SUPERUSER = 'admin';
/** A role that may log in and owns its database, as `klatch setup` creates it. */
const ROLE = 'klatch';
const DATABASE = 'klatch';
const PROGRAM_TIMEOUT_MS = 120_000;

const owner = serverOwner();
const identity = process.geteuid?.() === 0 ? { uid: owner.uid, gid: owner.gid } : {};

/** One server of a {@link PostgresCluster}, with a fixed TCP port of its own. */
export class PostgresNode {
  readonly name: string;
  readonly port: number;
  readonly dataDir: string;
  readonly #programs: PostgresqlPrograms;
  readonly #settings: Readonly<Record<string, string>>;
  #process: ChildProcess | null = null;

  constructor(
    place: { name: string; port: number; folder: string },
    options: ClusterOptions,
    programs: PostgresqlPrograms,
  ) {
    this.name = place.name;
    this.port = place.port;
    this.dataDir = join(place.folder, place.name);
    this.#programs = programs;
    this.#settings = options.settings ?? {};
  }

  /** Starts the server as a primary, or as a standby of the server `follow`. */
  async start(follow: PostgresNode | null = null): Promise<void> {
    const signalFile = join(this.dataDir, 'standby.signal');
    if (follow !== null) {
      await writeFile(signalFile, '');
      if (identity.uid !== undefined) await chown(signalFile, identity.uid, identity.gid);
    }
    const all = {
      fsync: 'off',
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      port: String(this.port),
      hot_standby: 'on',
      wal_keep_size: '256MB',
      wal_log_hints: 'on',
      shared_buffers: '16MB',
      wal_retrieve_retry_interval: '100ms',
      ...(follow === null
        ? {}
        : {
            primary_conninfo: `host=127.0.0.1 port=${follow.port} user=${SUPERUSER} application_name=${this.name}`,
          }),
      ...this.#settings,
    };
    const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const log = await open(`${this.dataDir}.log`, 'a');
    this.#process = spawn(
      '/bin/sh',
      ['-c', SCRIPT, 'sh', this.#programs.postgresPath, '-D', this.dataDir, ...options],
      {
        ...identity,
        cwd: '/',
        env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
        stdio: ['pipe', 'ignore', log.fd],
      },
    );
    await log.close();
    await eventually(
      () =>
        this.query((sql) => sql`select 1`).then(
          () => 'answers',
          (error: Error) => error.message,
        ),
      (answer) => answer === 'answers',
    );
  }

  /** Runs statements as the superuser, on a standby too. */
  async query<T>(work: (sql: Sql) => Promise<T>, database = 'postgres'): Promise<T> {
    const target = { ...this.target, user: SUPERUSER, database };
    const connection = new Connection(target, 'test', { acceptsReadOnly: true });
    try {
      return await connection.run(work, 20_000);
    } finally {
      connection.close();
    }
  }

  /** How to connect to this server alone, as the role that owns the database. */
  get target(): ConnectionTarget {
    return {
      host: '127.0.0.1',
      port: this.port,
      user: ROLE,
      database: DATABASE,
      password: '',
      connectTimeoutMs: 2_000,
      lockTimeoutMs: 1_000,
    };
  }

  /** Stops the server cleanly: its writes reach the standbys that follow it. */
  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.stdin!.end();
    await ended;
  }

  /** Kills all processes of the server at once, as a loss of power would. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null) return;
    const ended = once(child, 'exit');
    this.#signal('SIGKILL');
    child.stdin!.end();
    await ended;
    // The file contains the process id of the killed server, which another process may have got.
    await rm(join(this.dataDir, 'postmaster.pid'), { force: true });
  }

  /** Suspends all processes of the server: connections stay open, and no process answers. */
  pause(): void {
    this.#signal('SIGSTOP');
  }

  resume(): void {
    this.#signal('SIGCONT');
  }

  /** Promotes a standby; resolves when it accepts writes, on a new timeline. */
  async promote(): Promise<void> {
    const file = join(this.#programs.binDir, 'pg_ctl');
    const ran = await runProgram(
      { programPath: file, args: ['promote', '-w', '-D', this.dataDir], identity },
      PROGRAM_TIMEOUT_MS,
    );
    if (ran.exitCode !== 0) throw new Error(ran.stderr);
    await this.#untilWritable();
  }

  /** Changes settings that need a reload; resolves when they are in force. */
  async configure(settings: Readonly<Record<string, string>>): Promise<void> {
    const written = async (sql: Sql): Promise<boolean> => {
      const current = await sql<{ name: string; setting: string }[]>`select name, setting from pg_settings`;
      const values = new Map(current.map(({ name, setting }) => [name, setting]));
      return Object.entries(settings).every(([name, value]) => values.get(name) === value);
    };
    await this.query(async (sql) => {
      for (const [name, value] of Object.entries(settings)) await sql.unsafe(`alter system set ${name} = '${value}'`);
      await sql`select pg_reload_conf()`;
    });
    await eventually(() => this.query(written), Boolean);
  }

  /**
   * Replaces the rules of pg_hba.conf. Resolves when they are in force. The superuser can always connect without TLS.
   */
  async setRules(rules: readonly string[]): Promise<void> {
    const own = [`host all ${SUPERUSER} 127.0.0.1/32 trust`, `host replication ${SUPERUSER} 127.0.0.1/32 trust`];
    await writeFile(join(this.dataDir, 'pg_hba.conf'), `${[...own, ...rules].join('\n')}\n`);
    const loadedAt = async (sql: Sql): Promise<string> => {
      const [row] = await sql<{ at: string }[]>`select pg_conf_load_time()::text as at`;
      return row!.at;
    };
    const before = await this.query(loadedAt);
    await this.query((sql) => sql`select pg_reload_conf()`);
    await eventually(
      () => this.query(loadedAt),
      (at) => at !== before,
    );
  }

  async log(): Promise<string> {
    return readFile(`${this.dataDir}.log`, 'utf8');
  }

  async #untilWritable(): Promise<void> {
    await eventually(
      () => this.query(async (sql) => (await sql`select pg_is_in_recovery() as standby`)[0]!['standby'] === false),
      Boolean,
    );
  }

  #signal(signal: NodeJS.Signals): void {
    const postmaster = Number(readFileSync(join(this.dataDir, 'postmaster.pid'), 'utf8').split('\n')[0]);
    for (const pid of [postmaster, ...childrenOf(postmaster)]) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        // The process has ended in the meantime.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
  }
}

interface ClusterOptions {
  /** Settings of all servers, in addition to those that the cluster needs. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The number of servers; the first one is the primary. */
  readonly servers?: number;
  readonly programs?: PostgresqlPrograms;
}

/** PostgreSQL servers with replication: a primary, and standbys made from copies of its stopped data directory. */
export class PostgresCluster {
  readonly folder: string;
  readonly nodes: readonly PostgresNode[];

  private constructor(folder: string, nodes: readonly PostgresNode[]) {
    this.folder = folder;
    this.nodes = nodes;
  }

  /** Starts a cluster with a migrated database that belongs to `ROLE`, which is no superuser. */
  static async start(options: ClusterOptions = {}): Promise<PostgresCluster> {
    const programs = options.programs ?? (await localPrograms())[0];
    if (programs === undefined) throw new Error('no PostgreSQL that its owner can run: npm ci brings one');
    const folder = await mkdtemp(join(tmpdir(), 'klatch-cluster-'));
    if (identity.uid !== undefined) await chown(folder, identity.uid, identity.gid);
    await chmod(folder, 0o711);
    const nodes: PostgresNode[] = [];
    for (let n = 1; n <= (options.servers ?? 2); n += 1) {
      nodes.push(new PostgresNode({ name: `node${n}`, port: await freePort(), folder }, options, programs));
    }
    const cluster = new PostgresCluster(folder, nodes);
    try {
      await cluster.#build(programs);
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** Connection settings that list the servers in this order. */
  target(order: readonly PostgresNode[] = this.nodes): ConnectionTarget {
    const [first, ...others] = order;
    return { ...first!.target, otherHosts: others.map(({ port }) => ({ host: '127.0.0.1', port })) };
  }

  /** The cluster's database in the form that helpers of tests use; `query` uses the current primary. */
  asTestDatabase(): TestDatabase {
    const opened: Database[] = [];
    return {
      target: this.target(),
      filesFolder: join(this.folder, 'files'),
      open: (changes = {}) => {
        const database = new Database(
          { ...this.target(), ...changes },
          { ...postgresqlConfig, ...changes },
          silentLog(),
        );
        opened.push(database);
        return database;
      },
      query: async (work) => {
        const connection = new Connection({ ...this.target(), user: SUPERUSER }, 'test');
        try {
          return await connection.run(work, 20_000);
        } finally {
          connection.close();
        }
      },
      drop: async () => {
        await Promise.all(opened.map((database) => database.stop()));
      },
    };
  }

  /** Resolves when a standby has replayed everything that the primary has written. */
  async untilCaughtUp(primary: PostgresNode, standby: PostgresNode): Promise<void> {
    const [row] = await primary.query((sql) => sql<{ lsn: string }[]>`select pg_current_wal_lsn()::text as lsn`);
    const replayed = async (sql: Sql): Promise<boolean> => {
      const [answer] = await sql<{ done: boolean | null }[]>`
        select pg_last_wal_replay_lsn() >= ${row!.lsn}::text::pg_lsn as done`;
      return answer!.done === true;
    };
    await eventually(() => standby.query(replayed), Boolean);
  }

  /** Stops all servers and removes their data. */
  async stop(): Promise<void> {
    for (const node of this.nodes) await node.kill().catch(() => {});
    await rm(this.folder, { recursive: true, force: true });
  }

  async #build(programs: PostgresqlPrograms): Promise<void> {
    const [primary, ...standbys] = this.nodes as [PostgresNode, ...PostgresNode[]];
    const args = ['-D', primary.dataDir, '-U', SUPERUSER, '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
    const made = await runProgram({ programPath: programs.initdbPath, args, identity }, PROGRAM_TIMEOUT_MS);
    if (made.exitCode !== 0) throw new Error(made.stderr);
    await primary.start();
    await primary.query((sql) => sql.unsafe(`create role ${ROLE} login`));
    await primary.query((sql) => sql.unsafe(`create database ${DATABASE} owner ${ROLE}`));
    const pool = new Pool(primary.target, {
      name: 'migrate',
      maxConnections: 1,
      maxWaitingCalls: 1,
      timeoutMs: HANG_MS,
    });
    await migrate(pool);
    pool.stop();
    await primary.stop();
    for (const { dataDir } of standbys) {
      const copied = await runProgram(
        { programPath: '/bin/cp', args: ['-a', primary.dataDir, dataDir], identity },
        HANG_MS,
      );
      if (copied.exitCode !== 0) throw new Error(copied.stderr);
    }
    await primary.start();
    for (const standby of standbys) await standby.start(primary);
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      // The fields of /proc/<pid>/stat: the name of the program, in parentheses, may contain any character. The state
      // and the parent of the process follow it.
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent ? [Number(entry)] : [];
    } catch {
      return [];
    }
  });
}
