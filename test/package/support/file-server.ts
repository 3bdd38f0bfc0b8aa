import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';

/** Serves a folder on loopback. A test can replace the content of files. */
export class FileServer {
  /** Answers that replace files, by path; `*` stands for every other path. Null: 404. */
  readonly answers = new Map<string, ((content: Buffer) => Buffer | string) | null>();
  /** The requested paths. */
  readonly requests: string[] = [];
  readonly #folder: string;
  readonly #server: Server = createServer();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async start(folder: string): Promise<FileServer> {
    const server = new FileServer(folder);
    server.#server.on('request', ({ url }, res) => {
      const path = decodeURIComponent(new URL(url!, 'http://files').pathname);
      server.requests.push(path);
      const body = server.#bodyOf(path);
      if (body === null) {
        res.writeHead(404).end();
        return;
      }
      const file = join(folder, normalize(path));
      const modified = existsSync(file) ? { 'last-modified': statSync(file).mtime.toUTCString() } : {};
      res.writeHead(200, { 'content-length': Buffer.byteLength(body), ...modified }).end(body);
    });
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #bodyOf(path: string): Buffer | string | null {
    const file = join(this.#folder, normalize(path));
    const content = existsSync(file) && statSync(file).isFile() ? readFileSync(file) : null;
    const answer = this.answers.has(path) ? this.answers.get(path) : this.answers.get('*');
    if (answer === undefined) return content;
    return answer === null ? null : answer(content ?? Buffer.alloc(0));
  }
}
