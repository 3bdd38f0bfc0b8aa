import { connect, type Socket } from 'node:net';
import { expect } from '@jest/globals';
import type { Sql } from '../../src/storage/db/connection.ts';
import type { TestGroup, TestServer } from '../support/server.ts';

/** One answer as it was received. */
export interface WireResponse {
  readonly status: number;
  /** The headers by name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
  readonly body: any; // oxlint-disable-line typescript/no-explicit-any -- tests compare it whole
}

/** A connection on which the test controls every byte. */
export class Wire {
  readonly #socket: Socket;
  readonly #closed: Promise<void>;
  #received = Buffer.alloc(0);
  #isClosed = false;
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.#closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#isClosed = true;
        this.#wake();
        resolve();
      });
    });
    socket.on('error', () => socket.destroy());
    socket.once('end', () => this.#wake());
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake();
    });
  }

  static async open(port: number): Promise<Wire> {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
    const wire = new Wire(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return wire;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The number of bytes that were written and that the kernel has not accepted. */
  get pending(): number {
    return this.#socket.writableLength;
  }

  /** Writes bytes. Returns false when the kernel did not accept all of them. */
  write(bytes: string | Buffer): boolean {
    return this.#socket.write(bytes);
  }

  /** Stops reading from the connection. */
  pause(): void {
    this.#socket.pause();
  }

  /** Closes this side of the connection; the server may still send. */
  end(): void {
    this.#socket.end();
  }

  /** Resolves when the server has closed its side, and closes this side then. */
  async ended(): Promise<void> {
    this.#socket.once('end', () => this.#socket.end());
    if (this.#socket.readableEnded) this.#socket.end();
    await this.#closed;
  }

  close(): void {
    this.#socket.destroy();
  }

  /**
   * Resolves with the next answer, which may be an interim one (100). Rejects when the connection closes before the
   * answer is complete.
   */
  async response(options: { head?: boolean } = {}): Promise<WireResponse> {
    for (;;) {
      const response = this.#take(options.head === true);
      if (response !== null) return response;
      if (this.#isClosed || this.#socket.readableEnded) throw new Error('closed before the answer was whole');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #take(isHead: boolean): WireResponse | null {
    const headEnd = this.#received.indexOf('\r\n\r\n');
    if (headEnd < 0) return null;
    const [first = '', ...lines] = this.#received.subarray(0, headEnd).toString('latin1').split('\r\n');
    const headers = new Map(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const length = isHead ? 0 : Number(headers.get('content-length') ?? 0);
    const end = headEnd + 4 + length;
    if (this.#received.length < end) return null;
    const text = this.#received.subarray(headEnd + 4, end).toString();
    this.#received = this.#received.subarray(end);
    const isJson = headers.get('content-type')?.startsWith('application/json') === true && text !== '';
    return { status: Number(first.split(' ')[1]), headers, text, body: isJson ? JSON.parse(text) : null };
  }
}

export interface WireRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  readonly version?: '1.0' | '1.1';
}

/** The bytes of a request. With a body it has a Content-Length, unless its headers have one or are chunked. */
export function requestBytes({ method = 'POST', path, headers = {}, body, version = '1.1' }: WireRequest): Buffer {
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const all: Record<string, string> = { ...(names.has('host') ? {} : { host: 'klatch.example' }), ...headers };
  if (body !== undefined && !names.has('content-length') && !names.has('transfer-encoding')) {
    all['content-length'] = String(Buffer.byteLength(body));
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = Buffer.from(`${method} ${path} HTTP/${version}\r\n${lines.join('')}\r\n`, 'latin1');
  return Buffer.concat([head, Buffer.from(body ?? '')]);
}

/** Sends one request on a connection of its own. */
export async function request(port: number, options: WireRequest): Promise<WireResponse> {
  const wire = await Wire.open(port);
  try {
    wire.write(requestBytes(options));
    return await wire.response({ head: options.method === 'HEAD' });
  } finally {
    wire.close();
  }
}

/** Checks the headers that the contract demands of every answer with a body. */
export function expectResponseHeaders(response: { headers: ReadonlyMap<string, string> | Headers }): void {
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.get('referrer-policy')).toBe('no-referrer');
}

export interface StoredMessage {
  readonly seq: number;
  readonly text: string;
  readonly label: string | null;
  readonly icon_url: string | null;
  readonly hops: number;
}

/** A group's stored messages, in order. */
export function storedMessages(server: TestServer, group: TestGroup): Promise<StoredMessage[]> {
  return server.database.query(
    (sql: Sql) => sql<StoredMessage[]>`
      select seq, text, label, icon_url, hops from message where conversation_id = ${group.id} order by seq`,
  );
}

/** The text of a group's newest message. */
export async function newestText(server: TestServer, group: TestGroup): Promise<string | undefined> {
  return (await storedMessages(server, group)).at(-1)?.text;
}
