import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestGroup } from '../../test/support/server.ts';
import { freePort } from '../../test/support/ports.ts';
import { ServerProcess } from '../../test/support/server-process.ts';
import { createUsers } from '../seed-users.ts';
import { HttpConnection, requestOf } from '../support/http-connection.ts';
import { SETTINGS } from '../intake.ts';
import type { Transport } from './live-client.ts';
import { BenchProcess } from '../process.ts';

/**
 * Clients that get messages, and the place to which the messages are posted: Klatch over one of its transports, or the
 * bare server.
 */
export interface Side {
  readonly clients: BenchProcess;
  readonly count: number;
  readonly port: number;
  readonly path: string;
  /** The number of messages posted to this side since it was opened. */
  posted: number;
}

/** A server with live endpoints, a bare server to compare it with, and clients of both. `stop` ends all of them. */
export class LiveStage {
  readonly server: ServerProcess;
  readonly #tcpPort: number;
  readonly #folder: string;
  readonly #stops: (() => Promise<void>)[] = [];

  private constructor(server: ServerProcess, tcpPort: number, folder: string) {
    this.server = server;
    this.#tcpPort = tcpPort;
    this.#folder = folder;
  }

  static async start(settings = ''): Promise<LiveStage> {
    const tcpPort = await freePort();
    const endpoints = `endpoints = [{ type = tcp, port = ${tcpPort} }]`;
    const server = await ServerProcess.create(`${SETTINGS}\n${endpoints}\n${settings}`);
    const stage = new LiveStage(server, tcpPort, await mkdtemp(join(tmpdir(), 'klatch-bench-')));
    stage.#stops.push(
      () => server.remove(),
      () => rm(stage.#folder, { recursive: true }),
    );
    await server.start();
    return stage;
  }

  /**
   * Creates a group with this many members, and a client of each for one transport. The clients connect when they get
   * the line `open`.
   */
  async people(transport: 'ws' | 'tcp', count: number, follow: object): Promise<Side & { group: TestGroup }> {
    const group = await this.server.createGroup(`Over ${transport}`);
    const file = join(this.#folder, `${group.id}.tokens`);
    await writeFile(file, (await createUsers(this.server, group.id, count)).join('\n'));
    const port = transport === 'tcp' ? this.#tcpPort : this.server.port;
    const clients = await this.#clients([transport, String(port), '/v1/live', file, JSON.stringify(follow)]);
    return { clients, count, port: this.server.port, path: new URL(group.webhook).pathname, posted: 0, group };
  }

  /** Starts the bare server and its clients. The server sends `kept` messages to each client that connects. */
  async bare(count: number, kept = 0): Promise<Side & { pid: number }> {
    const { process: bare, first } = await BenchProcess.start('programs/bare-ws.ts', [String(kept)]);
    this.#stops.unshift(() => bare.stop());
    return { ...(await this.moreOf(Number(first), count)), pid: bare.pid };
  }

  /** Starts this many more clients of the bare server. */
  async moreOf(port: number, count: number): Promise<Side> {
    const transport: Transport = 'bare';
    const clients = await this.#clients([transport, String(port), '/', String(count)]);
    return { clients, count, port, path: '/', posted: 0 };
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.splice(0)) await stop();
  }

  async #clients(args: readonly string[]): Promise<BenchProcess> {
    const { process: clients } = await BenchProcess.start('programs/live-clients.ts', args);
    this.#stops.unshift(() => clients.stop());
    return clients;
  }
}

/** Connections that post to one side; each posts one message at a time. */
export class Posters {
  readonly #side: Side;
  readonly #connections: readonly HttpConnection[];

  private constructor(side: Side, connections: readonly HttpConnection[]) {
    this.#side = side;
    this.#connections = connections;
  }

  static async open(side: Side, count: number): Promise<Posters> {
    const opening = Array.from({ length: count }, () => HttpConnection.open('127.0.0.1', side.port));
    return new Posters(side, await Promise.all(opening));
  }

  /** Posts one message over each connection at once. Resolves when every client has all of these messages. */
  async volley(): Promise<number> {
    await Promise.all(this.#connections.map(async (connection, n) => this.post(connection, `message ${n}`)));
    await this.#side.clients.ask(`wait ${this.#side.posted * this.#side.count}`);
    return this.#connections.length;
  }

  /** Posts one text; rejects when the server did not accept it. */
  async post(connection: HttpConnection, text: string): Promise<void> {
    this.#side.posted += 1;
    const status = await connection.ask(requestOf(this.#side.path, { text: `${text}: load on web-1 is high` }));
    if (status !== 200) throw new Error(`a post was answered ${status}`);
  }

  get first(): HttpConnection {
    return this.#connections[0]!;
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }
}
