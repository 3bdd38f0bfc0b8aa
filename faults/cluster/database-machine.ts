import { chown, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readPasswd } from '../../src/data-dir/passwd.ts';
import { readDocumentedFile } from './documented-file.ts';
import type { Machine, ProgramFilter } from './machine.ts';

/** Debian's user for PostgreSQL. It runs the database server, and peer authentication makes it the superuser. */
const DATABASE_USER = 'postgres';
export const PATRONI_PORT = 8008;
export const DATABASE_PORT = 5432;
const LOG_TAIL_LINES = 15;

/** Selects every program of the machine except etcd. */
const isDatabaseProgram: ProgramFilter = (program) => program !== 'etcd';
const isPostgresql: ProgramFilter = (program) => program === 'postgres';

/** The values that replace those of docs/cluster.md in its files. */
export interface ClusterValues {
  readonly prefix: string;
  /** The parent of each machine's own folder. */
  readonly folder: string;
  readonly passwords: Readonly<Record<'postgres' | 'replicator' | 'rewinder' | 'klatch', string>>;
  /** Replacements in patroni.yml that a fault needs: the new text by the old one. */
  readonly patroniTexts: Readonly<Record<string, string>>;
}

/** A machine that runs etcd, and Patroni with its PostgreSQL. */
export class DatabaseMachine {
  readonly machine: Machine;
  readonly #hostNumber: number;
  readonly #folder: string;
  readonly #values: ClusterValues;

  private constructor(machine: Machine, hostNumber: number, values: ClusterValues) {
    this.machine = machine;
    this.#hostNumber = hostNumber;
    this.#folder = join(values.folder, machine.name);
    this.#values = values;
  }

  /** Writes the machine's files; starts nothing yet. */
  static async create(machine: Machine, hostNumber: number, values: ClusterValues): Promise<DatabaseMachine> {
    const created = new DatabaseMachine(machine, hostNumber, values);
    await created.#writeFiles();
    return created;
  }

  get name(): string {
    return this.machine.name;
  }

  get address(): string {
    return this.machine.address;
  }

  get configFile(): string {
    return join(this.#folder, 'patroni.yml');
  }

  async startEtcd(): Promise<void> {
    const text = await readFile(join(this.#folder, 'etcd.env'), 'utf8');
    const lines = [...text.matchAll(/^(ETCD_\w+)="(.*)"$/gm)];
    const env = Object.fromEntries(lines.map(([, name, value]) => [name!, value!] as const));
    await this.machine.start(['etcd'], { logFile: this.#logFile('etcd'), env });
  }

  /** Starts Patroni. Patroni then creates the data of PostgreSQL, copies it from the primary, or starts what exists. */
  async startPatroni(): Promise<void> {
    const options = { user: DATABASE_USER, logFile: this.#logFile('patroni'), env: { HOME: this.#folder } };
    await this.machine.start(['patroni', this.configFile], options);
  }

  /** Kills Patroni and all processes of PostgreSQL with -9; etcd continues. */
  async kill(): Promise<void> {
    await this.machine.killAll(isDatabaseProgram);
  }

  /** Kills PostgreSQL alone with -9. Patroni notices that, and may restart it at any time. */
  killPostgresql(): void {
    this.machine.signal('SIGKILL', isPostgresql);
  }

  /** Suspends Patroni and all processes of PostgreSQL: their connections stay open, and they do not answer. */
  pause(): void {
    this.machine.signal('SIGSTOP', isDatabaseProgram);
  }

  resume(): void {
    this.machine.signal('SIGCONT', isDatabaseProgram);
  }

  /** Runs a statement as the superuser. Returns its rows, with `|` between columns. */
  async sql(statement: string, database = 'postgres'): Promise<string[]> {
    const options = ['-h', this.#folder, '-d', database, '-X', '-A', '-t', '-v', 'ON_ERROR_STOP=1'];
    const output = await this.machine.run(['psql', ...options, '-c', statement], DATABASE_USER);
    return output.split('\n').filter((line) => line !== '');
  }

  async runSqlFile(file: string): Promise<void> {
    await this.machine.run(
      ['psql', '-h', this.#folder, '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', file],
      DATABASE_USER,
    );
  }

  /** The last lines of Patroni's log, for messages. */
  async logTail(): Promise<string> {
    const log = await readFile(this.#logFile('patroni'), 'utf8').catch(() => '');
    return log.trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
  }

  #logFile(program: string): string {
    return join(this.#folder, `${program}.log`);
  }

  async #writeFiles(): Promise<void> {
    const { prefix, passwords, patroniTexts } = this.#values;
    const owner = readPasswd().find(({ name }) => name === DATABASE_USER);
    if (owner === undefined) throw new Error(`there is no user ${DATABASE_USER}, whom postgresql-common makes`);
    await mkdir(this.#folder, { mode: 0o700 });
    const server = { name: this.name, hostNumber: this.#hostNumber };
    const etcd = await readDocumentedFile('etcd.env', {
      prefix,
      server,
      texts: { '/var/lib/etcd/klatch': join(this.#folder, 'etcd') },
    });
    const patroni = await readDocumentedFile('patroni.yml', {
      prefix,
      server,
      texts: {
        '/var/lib/postgresql/15/klatch': join(this.#folder, 'data'),
        // All machines share one file system, so each has its own folder for the socket of PostgreSQL.
        '/var/run/postgresql': this.#folder,
        '<password of postgres>': passwords.postgres,
        '<password of replicator>': passwords.replicator,
        '<password of rewinder>': passwords.rewinder,
        ...patroniTexts,
      },
    });
    await writeFile(join(this.#folder, 'etcd.env'), etcd);
    await writeFile(this.configFile, patroni, { mode: 0o600 });
    await chown(this.configFile, owner.uid, owner.gid);
    await chown(this.#folder, owner.uid, owner.gid);
  }
}
