import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import { ROOT } from './machine.ts';

/** Repositories that scripts/package/trial/trial-packages.ts makes; each contains the packages of the earlier ones. */
export type Publication =
  | 'first'
  /** A version with the schema of the first one. */
  | 'same-schema'
  /** A version whose migration works. */
  | 'new-schema'
  /** A version whose migration fails; not in the quick tests. */
  | 'failing';

/** Serves a repository as any web server would. */
export class Repository {
  /** The repository that is served now. */
  publication: Publication = 'first';
  /** The requested paths. */
  readonly requests: string[] = [];
  readonly #server: Server = createServer();

  static async start(): Promise<Repository> {
    const repository = new Repository();
    const server = repository.#server;
    server.on('request', ({ url }, res) => {
      const path = decodeURIComponent(new URL(url!, 'http://repository').pathname);
      repository.requests.push(path);
      const file = join(ROOT, 'build/trials', repository.publication, normalize(path));
      if (!existsSync(file) || !statSync(file).isFile()) {
        res.writeHead(404).end();
        return;
      }
      const { size, mtime } = statSync(file);
      res.writeHead(200, { 'content-length': size, 'last-modified': mtime.toUTCString() });
      createReadStream(file).pipe(res);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return repository;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
