/**
 * `make dev`: runs the server as `make run` does, builds the browser client, and starts both again after each change of
 * their sources. A server that ended because of a mistake in the sources starts again with the next change.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { buildWeb } from './package/web.ts';

const ROOT = join(import.meta.dirname, '..');
const SERVER_FOLDERS = ['src', 'packages'] as const;
const BROWSER_FOLDERS = ['web', 'client'] as const;
/**
 * The wait after a change before the restart: an editor that saves all files, or a checkout, makes many changes at
 * once.
 */
const SETTLE_MS = 200;

class DevServer {
  #isWebChanged = true;
  #isStopping = false;
  #change = Promise.withResolvers<void>();
  readonly #watchedPaths = new Set<string>();

  /**
   * Watches each folder of the sources, also those that were added since the last call. Node's recursive watch loses a
   * file that an editor or git replaces.
   */
  #watchSources(): void {
    for (const folder of [...SERVER_FOLDERS, ...BROWSER_FOLDERS]) {
      const isForBrowser = (BROWSER_FOLDERS as readonly string[]).includes(folder);
      for (const path of foldersIn(join(ROOT, folder))) {
        if (this.#watchedPaths.has(path)) continue;
        this.#watchedPaths.add(path);
        watch(path, () => {
          this.#isWebChanged ||= isForBrowser;
          this.#change.resolve();
        }).on('error', () => this.#watchedPaths.delete(path));
      }
    }
  }

  /** Resolves when a signal has stopped this script. */
  async run(): Promise<void> {
    while (!this.#isStopping) {
      this.#change = Promise.withResolvers();
      this.#watchSources();
      if (this.#isWebChanged) await this.#buildWeb();
      const server = this.#startServer();
      await this.#change.promise;
      await wait(SETTLE_MS);
      await stop(server);
    }
  }

  stop(): void {
    this.#isStopping = true;
    this.#change.resolve();
  }

  async #buildWeb(): Promise<void> {
    this.#isWebChanged = false;
    try {
      await buildWeb();
    } catch (error) {
      // esbuild has printed the place of the mistake; the former build stays.
      process.stderr.write(`dev: the browser client was not built: ${(error as Error).message.split('\n', 1)[0]!}\n`);
    }
  }

  #startServer(): ChildProcess {
    const server = spawn(process.execPath, ['scripts/first-run.ts'], { cwd: ROOT, stdio: 'inherit' });
    server.once('exit', (code) => {
      if (!this.#isStopping && code !== null && code !== 0)
        process.stderr.write(`dev: the server ended with status ${code}; it starts again after a change\n`);
    });
    return server;
  }
}

function foldersIn(path: string): string[] {
  const inner = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [path, ...inner.map(({ parentPath, name }) => join(parentPath, name))];
}

/** Waits until the server has ended. The wait ends, because `first-run.ts` kills a server that does not stop. */
async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, 'exit');
  server.kill('SIGTERM');
  await ended;
}

const dev = new DevServer();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => dev.stop());
await dev.run();
// Ends the process, which the watchers of the sources would keep alive.
process.exit();
