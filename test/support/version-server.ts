import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../src/log.ts';
import { Connection, type Sql } from '../../src/storage/db/connection.ts';
import { Database } from '../../src/storage/database.ts';
import { SUPERUSER } from '../../src/storage/embedded/cluster.ts';
import { startEmbedded, type EmbeddedServer } from '../../src/storage/embedded/embedded.ts';
import { postgresqlConfig } from './config.ts';
import { type TestDatabase } from './database.ts';
import { HANG_MS } from './eventually.ts';

/** A private server of one version of PostgreSQL, with as many empty databases as a test needs. */
export class VersionServer {
  readonly #dataDir: string;
  readonly #server: EmbeddedServer;

  private constructor(dataDir: string, server: EmbeddedServer) {
    this.#dataDir = dataDir;
    this.#server = server;
  }

  static async start(binDir: string): Promise<VersionServer> {
    const dataDir = await mkdtemp(join(tmpdir(), 'klatch-version-'));
    await chmod(dataDir, 0o711);
    try {
      const settings = { fsync: 'off', synchronous_commit: 'off', max_connections: '100' };
      return new VersionServer(
        dataDir,
        await startEmbedded({ dataDir, binDir, log: () => {}, serverSettings: settings }),
      );
    } catch (error) {
      await rm(dataDir, { recursive: true, force: true });
      throw error;
    }
  }

  get version(): string {
    return this.#server.postgresqlVersion;
  }

  /** An empty database that belongs to the role of the application. */
  async create(): Promise<TestDatabase> {
    const name = `v_${randomBytes(8).toString('hex')}`;
    await this.#as(SUPERUSER, 'postgres', (sql) => sql.unsafe(`create database ${name} owner ${this.#server.user}`));
    const { socketDir: host, port, user } = this.#server;
    const target = { host, port, user, database: name, password: '', connectTimeoutMs: 2_000, lockTimeoutMs: 1_000 };
    const opened: Database[] = [];
    return {
      target,
      filesFolder: join(this.#dataDir, `files-${name}`),
      open: (changes = {}) => {
        const database = new Database({ ...target, ...changes }, { ...postgresqlConfig, ...changes }, silentLog());
        opened.push(database);
        return database;
      },
      query: (work) => this.#as(user, name, work),
      drop: async () => {
        await Promise.all(opened.map((database) => database.stop()));
      },
    };
  }

  /** Stops the server and removes all its databases. */
  async stop(): Promise<void> {
    await this.#server.stop();
    await rm(this.#dataDir, { recursive: true, force: true });
  }

  async #as<T>(user: string, database: string, work: (sql: Sql) => Promise<T>): Promise<T> {
    const { socketDir: host, port } = this.#server;
    const target = { host, port, user, database, password: '', connectTimeoutMs: 2_000, lockTimeoutMs: 1_000 };
    const connection = new Connection(target, 'test');
    try {
      return await connection.run(work, HANG_MS);
    } finally {
      connection.close();
    }
  }
}
