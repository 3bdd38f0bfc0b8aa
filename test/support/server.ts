import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog, type Log } from '../../src/log.ts';
import { Server } from '../../src/server.ts';
import { findControlSocket } from '../../src/data-dir/control-socket-path.ts';
import { testConfig, type ConfigChanges } from './config.ts';
import { askControl } from './control.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';

export interface TestGroup {
  readonly id: number;
  /** The integration token, the secret in the webhook URL. */
  readonly token: string;
  /** `/v1/webhooks/<token>` on this server. */
  readonly webhook: string;
}

/** A whole server in this process, on a free port and a database of its own. */
export class TestServer {
  readonly database: TestDatabase;
  readonly #dataDir: string;
  readonly #ownsDatabase: boolean;
  readonly #make: () => Server;
  #server: Server;

  private constructor(make: () => Server, place: { dataDir: string; database: TestDatabase; ownsDatabase: boolean }) {
    this.#make = make;
    this.#server = make();
    this.#dataDir = place.dataDir;
    this.database = place.database;
    this.#ownsDatabase = place.ownsDatabase;
  }

  static async start(
    changes: ConfigChanges = {},
    options: { database?: TestDatabase; log?: Log } = {},
  ): Promise<TestServer> {
    const dataDir = await mkdtemp(join(tmpdir(), 'klatch-server-'));
    const database = options.database ?? (await createTestDatabase());
    const files = { localFilesFolder: database.filesFolder, ...changes.files };
    const config = testConfig(database.target, dataDir, { ...changes, files });
    const make = (): Server => new Server(config, options.log ?? silentLog());
    const server = new TestServer(make, { dataDir, database, ownsDatabase: options.database === undefined });
    await server.#server.start();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  get port(): number {
    return this.#server.port;
  }

  /** The URL for live clients on the HTTP port. */
  get liveUrl(): string {
    return `ws://127.0.0.1:${this.#server.port}/v1/live`;
  }

  /** The URLs and ports of the endpoints for live clients, in the order of the configuration. */
  get endpoints(): readonly { readonly url: string; readonly port: number }[] {
    return this.#server.endpoints;
  }

  /** The URL of the metrics, if the test has switched them on. */
  get metricsUrl(): string {
    return `http://127.0.0.1:${this.#server.metricsPort}/metrics`;
  }

  /** Calls an operation as the administrator. Rejects with the error's sentence for users. */
  operate<Result>(method: string, params: unknown = {}): Promise<Result> {
    return askControl<Result>(findControlSocket(this.#dataDir), method, params);
  }

  async createGroup(title = 'Lobby'): Promise<TestGroup> {
    const info = await this.operate<{ id: number; webhook: string }>('groups.create', { title });
    const token = info.webhook.split('/').at(-1)!;
    return { id: info.id, token, webhook: `${this.url}/v1/webhooks/${token}` };
  }

  /** Stops the server and starts another one in its place, on another port. */
  async restart(): Promise<void> {
    await this.#server.stop();
    this.#server = this.#make();
    await this.#server.start();
  }

  /** Stops the server, and drops its database unless the test passed one. */
  async stop(): Promise<void> {
    await this.#server.stop();
    if (this.#ownsDatabase) await this.database.drop();
    await rm(this.#dataDir, { recursive: true, force: true });
  }
}

/** Posts a JSON body and reads the JSON answer. */
export async function postJson(url: string, body: unknown, headers: Record<string, string> = {}): Promise<JsonAnswer> {
  const request = {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  };
  return readJson(await fetch(url, request));
}

export interface JsonAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: any; // oxlint-disable-line typescript/no-explicit-any -- tests compare it whole
}

export async function readJson(response: Response): Promise<JsonAnswer> {
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
}
