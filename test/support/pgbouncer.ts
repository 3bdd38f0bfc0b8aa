import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection, type ConnectionTarget } from '../../src/storage/db/connection.ts';
import { eventually } from './eventually.ts';
import { serverOwner } from './local-postgres.ts';
import { freePort } from './ports.ts';

const PROGRAM = '/usr/sbin/pgbouncer';
/** Whether Debian's package of pgbouncer is installed. */
export const isPgbouncerInstalled = existsSync(PROGRAM);

/** A pgbouncer, with only the necessary settings, in front of a PostgreSQL server that needs no password. */
export class Pgbouncer {
  /** How to connect through pgbouncer to the database that `start` got. */
  readonly target: ConnectionTarget;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(target: ConnectionTarget, child: ChildProcess, folder: string) {
    this.target = target;
    this.#child = child;
    this.#folder = folder;
  }

  static async start(
    behind: ConnectionTarget,
    settings: Readonly<Record<string, string | number>>,
  ): Promise<Pgbouncer> {
    const folder = await mkdtemp(join(tmpdir(), 'klatch-pgbouncer-'));
    const port = await freePort();
    const { host, port: serverPort, user, database } = behind;
    const all = { listen_addr: '127.0.0.1', listen_port: port, unix_socket_dir: '', auth_type: 'any', ...settings };
    const lines = [
      '[databases]',
      `${database} = host=${host} port=${serverPort} user=${user}`,
      '[pgbouncer]',
      ...Object.entries(all).map(([name, value]) => `${name} = ${value}`),
    ];
    const file = join(folder, 'pgbouncer.ini');
    await writeFile(file, `${lines.join('\n')}\n`);
    // pgbouncer refuses to run as root. If jest runs as root, pgbouncer runs as another user.
    const { uid, gid } = serverOwner();
    const identity = process.geteuid?.() === 0 ? { uid, gid } : {};
    if (identity.uid !== undefined) for (const path of [folder, file]) await chown(path, uid, gid);
    const log = await open(join(folder, 'pgbouncer.log'), 'a');
    const child = spawn(PROGRAM, [file], { ...identity, cwd: '/', stdio: ['ignore', 'ignore', log.fd] });
    await log.close();
    const pooler = new Pgbouncer({ ...behind, port }, child, folder);
    await eventually(
      () => pooler.#isReady(),
      (ready) => ready || child.exitCode !== null,
    );
    return pooler;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.kill('SIGTERM');
      await ended;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #isReady(): Promise<boolean> {
    const connection = new Connection(this.target, 'test');
    try {
      await connection.run((sql) => sql.unsafe('select 1'), 20_000);
      return true;
    } catch {
      return false;
    } finally {
      connection.close();
    }
  }
}
