import { chmod, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import type { Log } from '../../log.ts';
import type { Operation } from '../../operations/core/operation.ts';
import type { Services } from '../../operations/core/services.ts';
import { serveRpc } from '../json-rpc.ts';

const MAX_LINE_BYTES = 1024 * 1024;
const MAX_CONTROL_CONNECTIONS = 64;
const IDLE_TIMEOUT_MS = 60_000;

/**
 * The administrator's access: a Unix socket that carries one JSON-RPC text per line. Any process that may open the
 * socket is the system caller, so its file mode (0660) is the access rule. The server holds the data directory's lock,
 * so an existing socket file is left from a killed process.
 */
export class ControlSocket {
  readonly #path: string;
  readonly #services: Services;
  readonly #operations: ReadonlyMap<string, Operation>;
  readonly #log: Log;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  /** `path`: from `prepareControlSocket`, which manages the folder. */
  constructor(options: { path: string; services: Services; operations: ReadonlyMap<string, Operation>; log: Log }) {
    this.#path = options.path;
    this.#services = options.services;
    this.#operations = options.operations;
    this.#log = options.log;
    this.#server = createServer((socket) => this.#accept(socket));
    this.#server.maxConnections = MAX_CONTROL_CONNECTIONS;
  }

  async start(): Promise<void> {
    await rm(this.#path, { force: true });
    // With this umask, no process of another user can connect between bind and chmod.
    const previousUmask = process.umask(0o177);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#server.once('error', reject);
        this.#server.listen(this.#path, resolve);
      });
    } finally {
      process.umask(previousUmask);
    }
    await chmod(this.#path, 0o660);
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroySoon();
    await closed;
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setTimeout(IDLE_TIMEOUT_MS, () => socket.destroy());
    socket.on('error', (error) => this.#log.debug('a control connection broke', { error }));
    socket.once('close', () => this.#sockets.delete(socket));
    void this.#serveLines(socket).catch((error: unknown) => {
      this.#log.debug('a control connection ended', { error });
      socket.destroy();
    });
  }

  /** Serves one request after the other, which bounds the concurrent work of a connection. */
  async #serveLines(socket: Socket): Promise<void> {
    let buffered = Buffer.alloc(0);
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      buffered = Buffer.concat([buffered, chunk]);
      for (let lineEnd = buffered.indexOf('\n'); lineEnd !== -1; lineEnd = buffered.indexOf('\n')) {
        await this.#serveLine(socket, buffered.subarray(0, lineEnd).toString('utf8'));
        buffered = buffered.subarray(lineEnd + 1);
      }
      if (buffered.length > MAX_LINE_BYTES) throw new Error('a line is longer than 1 MiB');
    }
    socket.end();
  }

  async #serveLine(socket: Socket, line: string): Promise<void> {
    if (line.trim() === '') return;
    const context = {
      services: this.#services,
      operations: this.#operations,
      log: this.#log,
      caller: { kind: 'system' },
    } as const;
    const response = await serveRpc(line, context);
    if (response !== null) socket.write(`${response}\n`);
  }
}
