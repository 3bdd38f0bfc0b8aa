import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { withSnapshot } from '../../../src/storage/backup/snapshot.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

/** The size of a row: more than the buffer of a stream, so that this one row pauses the socket. */
const ROW_BYTES = 200_001;
const COPY_OUT_RESPONSE = 'H'.charCodeAt(0);
const COPY_DONE = 'c'.charCodeAt(0);

/**
 * A proxy between a client and PostgreSQL. It sends everything from the beginning of a copy to `CopyDone` in one write,
 * and the rest when `release` is called.
 */
class CopyEndProxy {
  readonly #server: Server;
  #client: Socket | null = null;
  #unparsed = Buffer.alloc(0);
  #copied: Buffer[] = [];
  #state: 'before' | 'copying' | 'held' | 'released' = 'before';

  private constructor(path: string) {
    this.#server = createServer((client) => {
      this.#client = client;
      const upstream = connect({ path });
      client.on('data', (chunk: Buffer) => upstream.write(chunk)).once('close', () => upstream.destroy());
      upstream.on('data', (chunk: Buffer) => this.#answer(chunk)).once('close', () => client.destroy());
    });
  }

  static async start(path: string): Promise<CopyEndProxy> {
    const proxy = new CopyEndProxy(path);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Sends what followed `CopyDone`. */
  release(): void {
    this.#state = 'released';
    this.#client?.write(this.#unparsed);
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#client?.destroy();
    await closed;
  }

  #answer(chunk: Buffer): void {
    if (this.#state === 'released') return void this.#client?.write(chunk);
    this.#unparsed = Buffer.concat([this.#unparsed, chunk]);
    while (this.#state !== 'held' && this.#unparsed.length >= 5) {
      const bytes = 1 + this.#unparsed.readUInt32BE(1);
      if (this.#unparsed.length < bytes) return;
      this.#forward(this.#unparsed.subarray(0, bytes));
      this.#unparsed = this.#unparsed.subarray(bytes);
    }
  }

  #forward(message: Buffer): void {
    if (message[0] === COPY_OUT_RESPONSE) this.#state = 'copying';
    if (this.#state === 'before') return void this.#client?.write(message);
    this.#copied.push(message);
    if (message[0] !== COPY_DONE) return;
    this.#client?.write(Buffer.concat(this.#copied));
    this.#state = 'held';
  }
}

let database: TestDatabase;
let proxy: CopyEndProxy;

beforeEach(async () => {
  database = await createTestDatabase();
  await database.query(async (sql) => {
    await sql`create table large (text text)`;
    await sql`insert into large select repeat('x', ${ROW_BYTES - 1})`;
  });
  proxy = await CopyEndProxy.start(`${database.target.host}/.s.PGSQL.${database.target.port}`);
});
afterEach(async () => {
  await proxy.stop();
  await database.drop();
});

test('a copy ends whose end comes after its rows have filled the buffer', async () => {
  const target = { ...database.target, host: '127.0.0.1', port: proxy.port };
  const signal = new AbortController().signal;
  const copied = await withSnapshot(target, { klatchVersion: '0', signal }, async ({ copy }) => {
    let bytes = 0;
    for await (const chunk of copy({ name: 'large', columns: ['text'] })) {
      bytes += chunk.length;
      if (bytes === ROW_BYTES) proxy.release();
    }
    return bytes;
  });
  expect(copied).toBe(ROW_BYTES);
});
