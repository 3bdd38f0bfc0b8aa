import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { eventually } from '../../../test/support/eventually.ts';
import { freePort } from '../../../test/support/ports.ts';

export const USER = 'viewer';
export const PASSWORD = 'a password of the benchmark';
const HASH_ROUNDS = 8;

/**
 * Runs before The Lounge, which asks GitHub for newer versions. On a machine that does not reach GitHub, the library
 * `got` of The Lounge repeats that request after its end, and throws an error that would end the process.
 */
const IGNORE_FAILED_UPDATE_CHECK = `process.on('uncaughtException', (error) => {
  if (/onCancel|api\\.github\\.com/.test(error.message)) return;
  console.error(error);
  process.exit(1);
});
`;

interface LoungeOptions {
  /** The script that starts The Lounge. */
  readonly script: string;
  /** An empty folder for the data of The Lounge. */
  readonly folder: string;
  readonly ircPort: number;
  readonly channels: readonly string[];
}

interface BcryptLibrary {
  readonly hashSync: (password: string, rounds: number) => string;
}

/** The Lounge with one user, who stays connected to the IRC server and is in these channels. */
export class LoungeServer {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  static async start({ script, folder, ircPort, channels }: LoungeOptions): Promise<LoungeServer> {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    await mkdir(join(folder, 'users'), { recursive: true });
    await writeFile(join(folder, 'config.js'), `module.exports = ${JSON.stringify(configOf(port), null, 2)};\n`);
    await writeFile(
      join(folder, 'users', `${USER}.json`),
      JSON.stringify(userOf({ script, ircPort, channels }), null, 2),
    );
    const preloaded = join(folder, 'ignore-failed-update-check.cjs');
    await writeFile(preloaded, IGNORE_FAILED_UPDATE_CHECK);
    const child = spawn(process.execPath, ['--require', preloaded, script, 'start'], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, NODE_ENV: 'production', THELOUNGE_HOME: folder },
    });
    await eventually(
      async () => child.exitCode !== null || (await fetch(url).catch(() => null))?.status === 200,
      (isDone) => isDone,
    );
    if (child.exitCode !== null) throw new Error(`The Lounge ended with ${child.exitCode}`);
    return new LoungeServer(url, child);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exited;
  }
}

function configOf(port: number): object {
  return {
    public: false,
    host: '127.0.0.1',
    port,
    prefetch: false,
    messageStorage: [],
    transports: ['websocket'],
  };
}

function userOf({ script, ircPort, channels }: Pick<LoungeOptions, 'script' | 'ircPort' | 'channels'>): object {
  // The bcrypt library is that of The Lounge: the project need not have it.
  const { hashSync } = createRequire(script)('bcryptjs') as BcryptLibrary;
  return {
    password: hashSync(PASSWORD, HASH_ROUNDS),
    log: false,
    networks: [
      {
        name: 'Bench',
        host: '127.0.0.1',
        port: ircPort,
        tls: false,
        nick: USER,
        username: USER,
        realname: USER,
        channels: channels.map((name) => ({ name })),
      },
    ],
  };
}
