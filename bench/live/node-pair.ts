import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { maxClientConnections } from '../../src/connection-limit.ts';
import { findPostmaster } from '../../src/storage/embedded/postmaster.ts';
import { ServerProcess } from '../../test/support/server-process.ts';
import { SETTINGS } from '../intake.ts';
import { BenchProcess } from '../process.ts';
import { createUsers, nickOf } from '../seed-users.ts';

/** The number of accounts of each node in one group: `presence.list` returns at most 1,000 accounts of a group. */
const PER_GROUP_AND_NODE = 500;
/** Connections that a server needs in addition to those of the clients. */
const OTHER_CONNECTIONS = 100;

const KEPT_LOG_LINES = 10;
/**
 * With these time-outs, no client is refused if the machine stalls for seconds: one refused client would end the
 * benchmark.
 */
const DATABASE_TIMEOUTS = 'services.postgresql { connect-timeout = 20s, query-timeout = 30s }';

/** The nicks of accounts: first those with clients on the first node, then those with clients on the second. */
export type NicksByHome = readonly [string[], string[]];

interface Group {
  readonly id: number;
  /** The first `perNode` members have their clients on the first node, the others on the second. */
  readonly perNode: number;
}

/** Two servers on the embedded PostgreSQL of the first, with live accounts on each; `stop` ends all of it. */
export class NodePair {
  readonly nodes: readonly [ServerProcess, ServerProcess];
  readonly databasePid: number;
  readonly #folder: string;
  readonly #groups: Group[] = [];
  readonly #clients: BenchProcess[] = [];

  private constructor(nodes: readonly [ServerProcess, ServerProcess], databasePid: number, folder: string) {
    this.nodes = nodes;
    this.databasePid = databasePid;
    this.#folder = folder;
  }

  /** Starts servers that accept this many live clients each. Rejects where the process may not open enough files. */
  static async start(clientsPerNode: number): Promise<NodePair> {
    const connections = clientsPerNode + OTHER_CONNECTIONS;
    const allowed = maxClientConnections();
    if (allowed !== null && allowed < connections) {
      throw new Error(
        `servers started here take ${allowed} connections at most, ${connections} are needed: raise ulimit -n`,
      );
    }
    const folder = await mkdtemp(join(tmpdir(), 'klatch-bench-'));
    const common = `
      ${SETTINGS}
      ${DATABASE_TIMEOUTS}
      live.connections = ${connections}
      services.file-storage.location = "${folder}/files"`;
    const first = await ServerProcess.create(common);
    const host = join(first.dataDir, 'postgresql.run');
    const database = `services.postgresql { embedded = false, host = "${host}" }`;
    const second = await ServerProcess.create(`${common}\n${database}`);
    try {
      await first.start();
      await second.start();
      const postmaster = await findPostmaster(join(first.dataDir, 'postgresql'));
      return new NodePair([first, second], postmaster!.pid, folder);
    } catch (error) {
      for (const server of [second, first]) await server.discard();
      await rm(folder, { recursive: true });
      throw error;
    }
  }

  /**
   * Adds `perNode` accounts for each node. Each group gets the same number from both. Resolves with the processes of
   * their clients, in the order of the nodes. The clients connect when they get `open`.
   */
  async createAccounts(perNode: number): Promise<BenchProcess[]> {
    const tokens: [string[], string[]] = [[], []];
    for (let left = perNode; left > 0; left -= PER_GROUP_AND_NODE) {
      const size = Math.min(left, PER_GROUP_AND_NODE);
      const { id } = await this.nodes[0].createGroup(`Group ${this.#groups.length + 1}`);
      const created = await createUsers(this.nodes[0], id, 2 * size);
      tokens[0].push(...created.slice(0, size));
      tokens[1].push(...created.slice(size));
      this.#groups.push({ id, perNode: size });
    }
    const started: BenchProcess[] = [];
    for (const [home, { port }] of this.nodes.entries()) {
      const file = join(this.#folder, `${this.#clients.length}.tokens`);
      await writeFile(file, tokens[home]!.join('\n'));
      const args = ['ws', String(port), '/v1/live', file, JSON.stringify({ default: 'now' })];
      const { process: clients } = await BenchProcess.start('programs/live-clients.ts', args);
      this.#clients.push(clients);
      started.push(clients);
    }
    return started;
  }

  /** Reads the presence of all created accounts from one node. Rejects when the clients of a node have ended. */
  async readPresence(node: 0 | 1): Promise<{ online: NicksByHome; away: NicksByHome }> {
    // A process of clients ends when a connection is closed. The presence of its accounts then says nothing about the
    // server.
    if (this.#clients.some((clients) => !clients.running)) throw new Error('a process of clients has ended');
    const online: NicksByHome = [[], []];
    const away: NicksByHome = [[], []];
    for (const { id, perNode } of this.#groups) {
      const request = { conversation: id };
      const listed = await this.nodes[node].operate<{ accounts: { nick: string }[] }>('presence.list', request);
      const nicks = new Set(listed.accounts.map(({ nick }) => nick));
      for (let n = 0; n < 2 * perNode; n += 1) {
        const nick = nickOf(id, n);
        (nicks.has(nick) ? online : away)[n < perNode ? 0 : 1].push(nick);
      }
    }
    return { online, away };
  }

  /** The last lines of the servers' logs: their warnings. */
  get logLines(): string[] {
    return this.nodes.flatMap(({ lines }) => lines.slice(-KEPT_LOG_LINES));
  }

  async stop(): Promise<void> {
    for (const clients of this.#clients) await clients.stop();
    for (const server of this.nodes.toReversed()) await server.remove();
    await rm(this.#folder, { recursive: true });
  }
}
