import { randomBytes } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { CleanUp } from '../clean-up.ts';
import type { Lack } from '../fault.ts';
import { until } from '../until.ts';
import { DATABASE_PORT, DatabaseMachine, PATRONI_PORT, type ClusterValues } from './database-machine.ts';
import { readDocumentedFile } from './documented-file.ts';
import type { Machine } from './machine.ts';
import { dropPackets, dropPortPackets, lacksNetwork, restorePackets, restorePortPackets, Network } from './network.ts';

const SERVERS = [
  { name: 'db1', hostNumber: 11 },
  { name: 'db2', hostNumber: 12 },
  { name: 'db3', hostNumber: 13 },
];
const PROXY = { name: 'haproxy', hostNumber: 20 };
const ASK_TIMEOUT_MS = 3_000;
/** Pause between two queries of Patroni's API: its answers cost more CPU time than a second of Klatch's load. */
const REST_MS = 300;
/** A standby that lags by less than this counts as following the primary. */
const FOLLOWING_BYTES = 1024 * 1024;
const STANDBY_ROLES = new Set(['replica', 'sync_standby']);

/** A database server in an answer of Patroni's API. */
interface Member {
  readonly name: string;
  readonly role: string;
  readonly state: string;
  readonly timeline?: number;
  /** How far the standby is behind the primary, in bytes; "unknown" before it has reported that. */
  readonly lag?: number | string;
}

interface ClusterOptions {
  /** Replacements in docs/cluster/patroni.yml: the new text by the old one. */
  readonly patroniTexts?: Readonly<Record<string, string>>;
  /** Whether commits wait for one of the standbys; true by default, as in docs/cluster/patroni.yml. */
  readonly isSynchronous?: boolean;
}

/** The cluster of docs/cluster.md: three servers with PostgreSQL, Patroni and etcd, and HAProxy. */
export class PatroniCluster {
  readonly folder: string;
  readonly servers: readonly DatabaseMachine[];
  readonly proxy: Machine;
  readonly #values: ClusterValues;
  readonly #isSynchronous: boolean;

  private constructor(
    parts: { servers: readonly DatabaseMachine[]; proxy: Machine; values: ClusterValues },
    sync: boolean,
  ) {
    this.servers = parts.servers;
    this.proxy = parts.proxy;
    this.folder = parts.values.folder;
    this.#values = parts.values;
    this.#isSynchronous = sync;
  }

  /** Resolves when all servers follow the primary and Klatch's database exists. */
  static async start(cleanUp: CleanUp, options: ClusterOptions = {}): Promise<PatroniCluster> {
    const { patroniTexts = {}, isSynchronous = true } = options;
    const folder = await mkdtemp(join(tmpdir(), 'klatch-patroni-'));
    await cleanUp.add('folder of the cluster', () => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
    await chmod(folder, 0o711);
    const network = await Network.create(cleanUp);
    const password = (): string => randomBytes(12).toString('hex');
    const passwords = { postgres: password(), replicator: password(), rewinder: password(), klatch: password() };
    const values = { prefix: network.prefix, folder, passwords, patroniTexts };
    const servers: DatabaseMachine[] = [];
    for (const { name, hostNumber } of SERVERS) {
      const machine = await network.addMachine(name, hostNumber, cleanUp);
      servers.push(await DatabaseMachine.create(machine, hostNumber, values));
    }
    const proxy = await network.addMachine(PROXY.name, PROXY.hostNumber, cleanUp);
    const cluster = new PatroniCluster({ servers, proxy, values }, isSynchronous);
    try {
      await cluster.#build();
    } catch (error) {
      const logs = await Promise.all(servers.map(async (each) => `${each.name}:\n${await each.logTail()}`));
      throw new Error(`the cluster did not come up: ${(error as Error).message}\n${logs.join('\n')}`, { cause: error });
    }
    return cluster;
  }

  /** Klatch's settings, with the address of the proxy or with the list of database servers. */
  async settings(way: 'proxy' | 'hosts'): Promise<string> {
    const file = way === 'proxy' ? 'server-haproxy.conf' : 'server.conf';
    const { prefix, passwords } = this.#values;
    return readDocumentedFile(file, { prefix, texts: { '<password of klatch>': passwords.klatch } });
  }

  /** The server that Patroni names as the primary. Waits until there is one. */
  async primary(): Promise<DatabaseMachine> {
    let found: DatabaseMachine | undefined;
    await until('the cluster has a primary', async () => {
      const leader = (await this.#members()).find(({ role, state }) => role === 'leader' && state === 'running');
      found = this.servers.find(({ name }) => name === leader?.name);
      return found !== undefined;
    });
    return found!;
  }

  /** All servers except this one. */
  others(server: DatabaseMachine): DatabaseMachine[] {
    return this.servers.filter((each) => each !== server);
  }

  /**
   * Resolves when both standbys follow the primary. With `isSynchronous`, commits wait for one of the standbys by then.
   */
  async untilHealthy(): Promise<void> {
    await until('all servers of the cluster replicate', async () => {
      const members = await this.#members();
      const leader = members.find(({ role, state }) => role === 'leader' && state === 'running');
      const standbys = members.filter((each) => isFollowing(each, leader));
      const hasSync = standbys.some(({ role }) => role === 'sync_standby');
      const areFollowing = standbys.length === SERVERS.length - 1 && (hasSync || !this.#isSynchronous);
      return leader !== undefined && areFollowing && (await this.#countStreams(leader.name)) === standbys.length;
    });
  }

  /**
   * The number of standbys that receive changes from this server. A new standby has almost no lag before it receives
   * any: Patroni makes its replication slot up to 10 s later.
   */
  async #countStreams(leader: string): Promise<number> {
    const server = this.servers.find(({ name }) => name === leader);
    const query = "select count(*) from pg_stat_replication where state = 'streaming'";
    // A server that is just being promoted refuses the query; the caller asks again.
    const rows = await server?.sql(query, 'postgres').catch(() => []);
    return Number(rows?.[0] ?? 0);
  }

  /** Promotes a standby by a planned switchover. Resolves when Patroni reports it as the primary. */
  async switchOver(): Promise<void> {
    const before = await this.primary();
    const candidate = (await this.#members()).find(
      ({ role }) => role === (this.#isSynchronous ? 'sync_standby' : 'replica'),
    );
    if (candidate === undefined) throw new Error('there is no standby to switch over to');
    const names = ['--leader', before.name, '--candidate', candidate.name];
    const command = ['patronictl', '-c', before.configFile, 'switchover', ...names, '--force'];
    const printed = await before.machine.run(command);
    if ((await this.primary()).name === before.name) throw new Error(`no switchover:\n${printed}`);
  }

  /** Cuts the server off from the other servers and the proxy. Klatch still reaches it directly. */
  async isolate(server: DatabaseMachine): Promise<void> {
    for (const other of this.#beside(server)) await dropPackets(server.machine, other);
  }

  async reconnect(server: DatabaseMachine): Promise<void> {
    for (const other of this.#beside(server)) await restorePackets(server.machine, other);
  }

  /** Cuts the replication from this primary to its standbys. Patroni and etcd still reach each other. */
  async cutReplication(primary: DatabaseMachine): Promise<void> {
    for (const { machine } of this.others(primary)) await dropPortPackets(primary.machine, machine, DATABASE_PORT);
  }

  async restoreReplication(primary: DatabaseMachine): Promise<void> {
    for (const { machine } of this.others(primary)) await restorePortPackets(primary.machine, machine, DATABASE_PORT);
  }

  #beside(server: DatabaseMachine): Machine[] {
    return [...this.others(server).map(({ machine }) => machine), this.proxy];
  }

  async #build(): Promise<void> {
    for (const server of this.servers) await server.startEtcd();
    await until('etcd has a leader', async () => (await Promise.all(this.servers.map(hasEtcdLeader))).every(Boolean));
    const [first, ...others] = this.servers as [DatabaseMachine, ...DatabaseMachine[]];
    await first.startPatroni();
    await this.primary();
    for (const server of others) await server.startPatroni();
    await this.untilHealthy();
    await this.#startProxy();
    const { prefix, passwords, folder } = this.#values;
    const texts = { '<password of klatch>': passwords.klatch };
    const file = join(folder, 'klatch.sql');
    // The user postgres has to read this file. Only this folder has its password, and the clean-up removes the folder
    // soon.
    await writeFile(file, await readDocumentedFile('klatch.sql', { prefix, texts }), { mode: 0o644 });
    await first.runSqlFile(file);
    await until('HAProxy leads to the primary', () => this.#isProxyReady());
  }

  async #isProxyReady(): Promise<boolean> {
    const login = ['-h', this.proxy.address, '-p', String(DATABASE_PORT), '-U', 'klatch', '-d', 'klatch', '-w'];
    const command = ['env', `PGPASSWORD=${this.#values.passwords.klatch}`, 'psql', ...login, '-X', '-c', 'select 1'];
    return this.proxy.run(command).then(
      () => true,
      () => false,
    );
  }

  async #startProxy(): Promise<void> {
    const file = join(this.folder, 'haproxy.cfg');
    await writeFile(file, await readDocumentedFile('haproxy.cfg', { prefix: this.#values.prefix }));
    await this.proxy.start(['haproxy', '-db', '-f', file], { logFile: join(this.folder, 'haproxy.log') });
  }

  /** The members according to the database server that knows the newest timeline; empty if no server answers. */
  async #members(): Promise<readonly Member[]> {
    const answers = await Promise.all(
      this.servers.map(({ address }) => askJson<{ members: Member[] }>(`http://${address}:${PATRONI_PORT}/cluster`)),
    );
    await wait(REST_MS);
    const views = answers.flatMap((answer) => (answer === null ? [] : [answer.members]));
    return views.toSorted((a, b) => timelineOf(b) - timelineOf(a))[0] ?? [];
  }
}

function timelineOf(members: readonly Member[]): number {
  return members.find(({ role }) => role === 'leader')?.timeline ?? 0;
}

function isFollowing({ role, timeline, lag }: Member, leader: Member | undefined): boolean {
  return STANDBY_ROLES.has(role) && timeline === leader?.timeline && typeof lag === 'number' && lag < FOLLOWING_BYTES;
}

async function hasEtcdLeader({ address }: DatabaseMachine): Promise<boolean> {
  return (await askJson<{ health: string }>(`http://${address}:2379/health`))?.health === 'true';
}

async function askJson<Answer>(url: string): Promise<Answer | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ASK_TIMEOUT_MS) });
    return response.ok ? ((await response.json()) as Answer) : null;
  } catch {
    return null;
  }
}

/** The programs of the cluster, each with the package of Debian that contains it. */
const PROGRAMS: Readonly<Record<string, string>> = {
  patroni: 'patroni',
  patronictl: 'patroni',
  etcd: 'etcd-server',
  haproxy: 'haproxy',
  psql: 'postgresql-client-15',
  setpriv: 'util-linux',
};
const POSTGRES = '/usr/lib/postgresql/15/bin/postgres';

/** Checks which programs and rights for a cluster with Patroni this machine lacks. */
export async function lacksCluster(): Promise<Lack> {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  const missing = Object.keys(PROGRAMS).filter((name) => !folders.some((folder) => isExecutable(join(folder, name))));
  const packages = [...missing.map((name) => PROGRAMS[name]!), ...(isExecutable(POSTGRES) ? [] : ['postgresql-15'])];
  if (packages.length > 0) {
    const names = [...new Set(packages)].join(' ');
    return `programs of Debian 12 are missing: apt-get install --no-install-recommends ${names}`;
  }
  return lacksNetwork();
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
