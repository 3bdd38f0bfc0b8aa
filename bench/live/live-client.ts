import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

/** The protocol of a live client of a benchmark. `bare` is a WebSocket to the bare server, without authentication. */
export type Transport = 'ws' | 'tcp' | 'bare';

const UPGRADED = Buffer.from('\r\n\r\n');
const NEWLINE = 0x0a;
/** The offset of the method's name in `{"jsonrpc":"2.0","method":"conversation.change"`. */
const METHOD_AT = 27;
const METHOD = 'conversation.change';

/**
 * A client that works as little as possible, since it shares the machine's cores with the measured server. It
 * authenticates, subscribes, and passes each frame of a change to its owner as a range of a buffer.
 */
export class BenchClient {
  readonly #socket: Socket;
  readonly #transport: Transport;
  readonly #onChange: (bytes: Buffer, start: number, end: number) => void;
  #rest: Buffer | null = null;
  #upgraded: boolean;
  #expected = 0;
  #farewell = 'without a word';
  #isLeaving = false;
  readonly #ready = Promise.withResolvers<void>();

  private constructor(socket: Socket, transport: Transport, onChange: BenchClient['onChange']) {
    this.#socket = socket;
    this.#transport = transport;
    this.#onChange = onChange;
    this.#upgraded = transport === 'tcp';
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', (error) => this.#ready.reject(error));
    socket.on('close', () => {
      if (this.#isLeaving) return;
      // This error ends the process, whatever closed the connection: without this client the expected counts would
      // never be reached.
      throw new Error(`a live connection was closed: ${this.#farewell}`);
    });
  }

  /**
   * Connects. With a token the client authenticates, with `follow` it subscribes. Resolves when the server has
   * answered.
   */
  static async open(
    place: { transport: Transport; port: number; path: string },
    who: { token: string | null; follow: object | null },
    onChange: (bytes: Buffer, start: number, end: number) => void,
  ): Promise<BenchClient> {
    const { transport, port, path } = place;
    const socket = await new Promise<Socket>((resolve, reject) => {
      const opened = connect({ port, host: '127.0.0.1' }, () => resolve(opened));
      opened.once('error', reject);
    });
    const client = new BenchClient(socket, transport, onChange);
    if (transport !== 'tcp') {
      const key = randomBytes(16).toString('base64');
      const head = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n`;
      socket.write(`${head}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`);
    }
    const calls: [string, object][] = [];
    if (who.token !== null) calls.push(['live.authenticate', { token: who.token }]);
    if (who.follow !== null) calls.push(['live.subscribe', who.follow]);
    client.#expected = calls.length;
    for (const [id, [method, params]] of calls.entries()) {
      client.#send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    }
    await client.#ready.promise;
    return client;
  }

  get onChange(): (bytes: Buffer, start: number, end: number) => void {
    return this.#onChange;
  }

  close(): void {
    this.#isLeaving = true;
    this.#socket.destroy();
  }

  #send(text: string): void {
    if (this.#transport === 'tcp') {
      this.#socket.write(`${text}\n`);
      return;
    }
    const payload = Buffer.from(text);
    // A client has to mask its frames; a mask of zeros leaves the payload unchanged.
    const head = payload.length < 126 ? Buffer.alloc(6) : Buffer.alloc(8);
    head[0] = 0x81;
    if (payload.length < 126) head[1] = 0x80 | payload.length;
    else {
      head[1] = 0x80 | 126;
      head.writeUInt16BE(payload.length, 2);
    }
    this.#socket.write(Buffer.concat([head, payload]));
  }

  #read(chunk: Buffer): void {
    let bytes = this.#rest === null ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = null;
    if (!this.#upgraded) {
      const end = bytes.indexOf(UPGRADED);
      if (end === -1) {
        this.#rest = bytes;
        return;
      }
      if (bytes.toString('latin1', 9, 12) !== '101') this.#ready.reject(new Error(bytes.toString('latin1', 0, end)));
      this.#upgraded = true;
      bytes = bytes.subarray(end + UPGRADED.length);
      if (this.#expected === 0) this.#ready.resolve();
    }
    const read = this.#transport === 'tcp' ? this.#readLines(bytes) : this.#readFrames(bytes);
    if (read < bytes.length) this.#rest = bytes.subarray(read);
  }

  #readLines(bytes: Buffer): number {
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      this.#take(bytes, start, end);
      start = end + 1;
    }
    return start;
  }

  #readFrames(bytes: Buffer): number {
    let start = 0;
    while (start + 2 <= bytes.length) {
      let length = bytes[start + 1]!;
      let head = 2;
      if (length === 126) {
        if (start + 4 > bytes.length) break;
        length = bytes.readUInt16BE(start + 2);
        head = 4;
      } else if (length === 127) {
        if (start + 10 > bytes.length) break;
        length = bytes.readUInt32BE(start + 6);
        head = 10;
      }
      const end = start + head + length;
      if (end > bytes.length) break;
      const opcode = bytes[start]! & 0x0f;
      if (opcode === 1) this.#take(bytes, start + head, end);
      else if (opcode === 8) this.#farewell = bytes.toString('utf8', start + head + 2, end);
      else if (opcode === 9) this.#socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]));
      start = end;
    }
    return start;
  }

  #take(bytes: Buffer, start: number, end: number): void {
    if (bytes.toString('latin1', start + METHOD_AT, start + METHOD_AT + METHOD.length) === METHOD) {
      this.#onChange(bytes, start, end);
      return;
    }
    const text = bytes.toString('utf8', start, end);
    const { id, method, error } = JSON.parse(text) as { id?: number; method?: string; error?: unknown };
    if (error !== undefined) this.#ready.reject(new Error(text));
    if (id === undefined) {
      this.#farewell = text;
      // The server takes any line as proof that the client is alive.
      if (method === 'ping') this.#socket.write('\n');
      return;
    }
    this.#expected -= 1;
    if (this.#expected === 0) this.#ready.resolve();
  }
}
