import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { WebSocket } from 'ws';
import { eventually } from '../support/eventually.ts';

/** A notification of the server. */
export interface Notification {
  readonly method: string;
  readonly params: any; // oxlint-disable-line typescript/no-explicit-any -- tests compare it whole
}

interface RpcResponse {
  readonly result?: any; // oxlint-disable-line typescript/no-explicit-any -- tests compare it whole
  readonly error?: { readonly code: number; readonly message: string; readonly data?: { readonly code: string } };
}

export interface ClientOptions {
  /** The certificate authority that the client trusts for a TLS server. */
  readonly ca?: string;
  readonly headers?: Record<string, string>;
}

/** A client of the live endpoints for tests, on a raw socket or on the library's WebSocket. */
export class LiveClient {
  /** All notifications of the server, in order. */
  readonly notifications: Notification[] = [];
  /** All received texts, in order. */
  readonly texts: string[] = [];
  /** The close code, of the WebSocket or of the last line on TCP; null: the connection is open. */
  code: number | null = null;
  /** The reason that the server gave for the close. */
  reason = '';
  readonly #transport: WebSocket | Socket;
  readonly #responses = new Map<number, RpcResponse>();
  #nextId = 1;
  #partialLine = '';

  private constructor(transport: WebSocket | Socket) {
    this.#transport = transport;
    if (transport instanceof WebSocket) {
      transport.on('message', (data: Buffer) => this.#onMessage(data.toString('utf8')));
      transport.on('close', (code, reason) => this.#onClose(code, reason.toString('utf8')));
      transport.on('error', () => {});
    } else {
      transport.setEncoding('utf8');
      transport.on('data', (text: string) => this.#onData(text));
      transport.on('error', () => {});
      transport.on('close', () => {
        const ended = this.of('session.ended').at(-1)?.params as { code: number; reason: string } | undefined;
        this.#onClose(ended?.code ?? 0, ended?.reason ?? '');
      });
    }
  }

  /** Connects to an address that begins with ws, wss, tcp or tls. */
  static async connect(url: string, { ca, headers = {} }: ClientOptions = {}): Promise<LiveClient> {
    const { protocol, hostname, port } = new URL(url);
    if (protocol.startsWith('ws')) {
      const socket = new WebSocket(url, { headers, ...(ca === undefined ? {} : { ca }) });
      const client = new LiveClient(socket);
      await once(socket, 'open');
      return client;
    }
    const address = { host: hostname, port: Number(port) };
    const socket = protocol === 'tls:' ? connectTls({ ...address, ca, servername: 'localhost' }) : connectTcp(address);
    const client = new LiveClient(socket);
    await once(socket, protocol === 'tls:' ? 'secureConnect' : 'connect');
    return client;
  }

  /** Connects and authenticates. */
  static async signIn(url: string, token: string, options: ClientOptions = {}): Promise<LiveClient> {
    const client = await LiveClient.connect(url, options);
    await client.call('live.authenticate', { token });
    return client;
  }

  /** The raw socket, on which a test can do what no client should do. */
  get socket(): Socket {
    const transport = this.#transport;
    return transport instanceof WebSocket ? (Reflect.get(transport, '_socket') as Socket) : transport;
  }

  send(text: string): void {
    if (this.#transport instanceof WebSocket) this.#transport.send(text);
    else this.#transport.write(`${text}\n`);
  }

  sendBinary(bytes: Buffer): void {
    if (this.#transport instanceof WebSocket) this.#transport.send(bytes, { binary: true });
    else this.#transport.write(Buffer.concat([bytes, Buffer.from('\n')]));
  }

  /** Sends a request and resolves with the complete answer. */
  async request(method: string, params: unknown = {}): Promise<RpcResponse> {
    const id = this.#nextId;
    this.#nextId += 1;
    this.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return this.responseTo(id);
  }

  async responseTo(id: number): Promise<RpcResponse> {
    const response = await eventually(
      () => this.#responses.get(id) ?? (this.code === null ? null : { error: { code: 0, message: 'closed' } }),
      (response) => response !== null,
    );
    return response!;
  }

  /** Sends a request. Resolves with its result; rejects with the sentence of its error. */
  async call(method: string, params: unknown = {}): Promise<RpcResponse['result']> {
    const { result, error } = await this.request(method, params);
    if (error !== undefined) throw new Error(error.message);
    return result;
  }

  of(method: string): Notification[] {
    return this.notifications.filter((each) => each.method === method);
  }

  /** The changes of a conversation, in the order of their arrival. */
  changes(conversation: number): Notification['params'][] {
    return this.of('conversation.change')
      .map(({ params }) => params)
      .filter((params) => params.conversation === conversation);
  }

  /** Resolves with the code when the connection has closed. */
  async ended(): Promise<number> {
    return (await eventually(
      () => this.code,
      (code) => code !== null,
    ))!;
  }

  /** Stops reading, as a client that hangs. */
  pause(): void {
    if (this.#transport instanceof WebSocket) this.#transport.pause();
    else this.#transport.pause();
  }

  resume(): void {
    if (this.#transport instanceof WebSocket) this.#transport.resume();
    else this.#transport.resume();
  }

  /** Destroys the connection without a close message. */
  kill(): void {
    if (this.#transport instanceof WebSocket) this.#transport.terminate();
    else this.#transport.resetAndDestroy();
  }

  async close(): Promise<void> {
    if (this.code !== null) return;
    if (this.#transport instanceof WebSocket) this.#transport.close();
    else this.#transport.end();
    this.resume();
    await this.ended();
  }

  #onData(text: string): void {
    const lines = (this.#partialLine + text).split('\n');
    this.#partialLine = lines.pop()!;
    for (const line of lines) this.#onMessage(line);
  }

  #onMessage(text: string): void {
    this.texts.push(text);
    const message = JSON.parse(text) as Notification & RpcResponse & { id?: number | null };
    if (message.method !== undefined) this.notifications.push(message);
    else if (typeof message.id === 'number') this.#responses.set(message.id, message);
  }

  #onClose(code: number, reason: string): void {
    this.code ??= code;
    this.reason = reason;
  }
}
