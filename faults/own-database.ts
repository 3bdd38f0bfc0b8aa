import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbedded, type EmbeddedServer } from '../src/storage/embedded/embedded.ts';
import { findPostmaster, waitUntilGone } from '../src/storage/embedded/postmaster.ts';
import type { CleanUp } from './clean-up.ts';

const GONE_MS = 240_000;

/** A PostgreSQL server that Klatch neither starts nor stops, as one that an administrator runs. */
export class OwnDatabase {
  readonly #dir: string;
  #server: EmbeddedServer;

  private constructor(dir: string, server: EmbeddedServer) {
    this.#dir = dir;
    this.#server = server;
  }

  static async start(cleanUp: CleanUp): Promise<OwnDatabase> {
    const dir = await mkdtemp(join(tmpdir(), 'klatch-faults-'));
    await cleanUp.add('folder of the database', () => rm(dir, { recursive: true, force: true, maxRetries: 3 }));
    // If the tests run as root, PostgreSQL runs as another user, who has to pass through this folder.
    await chmod(dir, 0o711);
    await cleanUp.add('database', () => endPostmaster(dir));
    return new OwnDatabase(dir, await start(dir));
  }

  /** The settings (HOCON) with which a Klatch server uses this database; by default at its own address. */
  settings(way: { readonly host: string; readonly port: number } = this.place): string {
    const { user, database } = this.#server;
    return `services.postgresql {
      embedded = false, host = "${way.host}", port = ${way.port}, user = ${user}, db = ${database}
    }
    services.file-storage.location = "${this.#dir}/files"`;
  }

  /** The folder of the database's socket, and the port in the socket's name. */
  get place(): { host: string; port: number } {
    return { host: this.#server.socketDir, port: this.#server.port };
  }

  /** Kills the postmaster with -9, and starts it again after its children have ended. */
  async killAndRestart(): Promise<void> {
    await killPostmaster(this.#dir);
    this.#server = await start(this.#dir);
  }
}

function start(dataDir: string): Promise<EmbeddedServer> {
  return startEmbedded({ dataDir, binDir: null, log: () => {} });
}

/** Kills the postmaster of a data directory with -9. */
export async function killPostmaster(dataDir: string): Promise<void> {
  const postmaster = await findPostmaster(join(dataDir, 'postgresql'));
  if (postmaster === null) throw new Error('there is no database server to kill');
  process.kill(postmaster.pid, 'SIGKILL');
}

/** Ends the postmaster without a clean shutdown, since the caller removes its files afterwards. */
async function endPostmaster(dataDir: string): Promise<void> {
  const clusterDir = join(dataDir, 'postgresql');
  const postmaster = await findPostmaster(clusterDir);
  if (postmaster === null) return;
  process.kill(postmaster.pid, 'SIGQUIT');
  await waitUntilGone(postmaster.pid, clusterDir, GONE_MS);
}
