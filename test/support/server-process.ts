import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { findPostmaster, waitUntilGone } from '../../src/storage/embedded/postmaster.ts';
import { askControl } from './control.ts';
import { eventually, HANG_MS } from './eventually.ts';
import { freePort } from './ports.ts';
import { LAUNCHER } from './program-files.ts';
import type { TestGroup } from './server.ts';

const KEPT_LINES = 200;
/** The `secret` of the servers, with which tests seal rows that they insert directly. */
export const SECRET = 'a secret for tests that is long enough to be taken';

export interface ProcessOptions {
  /** A command, with arguments, that runs the program by exec, so that signals reach the server. */
  readonly within?: readonly string[];
  /** Variables that override those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** The parent of the server's own folder; by default the system's temporary folder. */
  readonly parentDir?: string;
  /** A module that the server loads before its own, and that `tell` sends messages to. */
  readonly preload?: string;
}

/** The real server program as a process that tests can stop and kill. It has a folder of its own. */
export class ServerProcess {
  readonly dataDir: string;
  readonly port: number;
  /** The last lines of the server's log, over all starts. */
  readonly lines: string[] = [];
  readonly #configFile: string;
  readonly #options: ProcessOptions;
  #child: ChildProcess | null = null;

  private constructor(dataDir: string, port: number, options: ProcessOptions) {
    this.dataDir = dataDir;
    this.port = port;
    this.#options = options;
    this.#configFile = join(dataDir, 'server.conf');
  }

  /** Writes a configuration with the embedded database, followed by `settings` (HOCON). Starts nothing yet. */
  static async create(settings = '', options: ProcessOptions = {}): Promise<ServerProcess> {
    const dataDir = await mkdtemp(join(options.parentDir ?? tmpdir(), 'klatch-process-'));
    const port = await freePort();
    const text = `
      secret = "${SECRET}"
      data-dir = "${dataDir}"
      services.postgresql.embedded = true
      http { interface = "127.0.0.1", port = ${port}, base-uri = "http://127.0.0.1:${port}" }
      metrics.port = 0
      endpoints = []
      delivery.allow = ["loopback"]
      log.format = json
      ${settings}`;
    const server = new ServerProcess(dataDir, port, options);
    await writeFile(server.#configFile, text, { mode: 0o600 });
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The process id of the running server. */
  get pid(): number {
    return this.#child!.pid!;
  }

  /** Whether the server runs: false before `start`, and after it has exited for any reason. */
  get running(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts the server and resolves when it is ready. Rejects with its last log lines if it exits before. */
  async start(): Promise<void> {
    const { within = [], env, preload } = this.#options;
    const loading = preload === undefined ? {} : { NODE_OPTIONS: `--import=${pathToFileURL(preload).href}` };
    const [command, ...args] = [...within, LAUNCHER, 'serve', '--config', this.#configFile];
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe', ...(preload === undefined ? [] : (['ipc'] as const))],
      env: { ...process.env, ...env, ...loading },
    });
    this.#child = child;
    for (const stream of [child.stdout!, child.stderr!]) {
      createInterface({ input: stream }).on('line', (line) => {
        this.lines.push(line);
        if (this.lines.length > KEPT_LINES) this.lines.shift();
      });
    }
    await this.ready();
  }

  /** Resolves when the running server is ready; rejects with the server's last log lines if it exits before. */
  async ready(): Promise<void> {
    const child = this.#child!;
    await eventually(
      async () => {
        if (child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`the server ended before it was ready:\n${this.lines.slice(-20).join('\n')}`);
        }
        return (await fetch(`${this.url}/v1/ready`).catch(() => null))?.status;
      },
      (status) => status === 200,
    );
  }

  /** Ends the server with a signal. Resolves to the exit code (null: the signal killed the server). */
  async end(signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL'): Promise<number | null> {
    const child = this.#child;
    if (child === null) return null;
    this.#child = null;
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const exited = once(child, 'exit');
    child.kill(signal);
    const [code] = (await exited) as [number | null];
    return code;
  }

  /** Sends SIGSTOP, which freezes the process, or SIGCONT, which lets it continue. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal);
  }

  /** Sends a message to the module `preload`. Resolves when the module has answered. */
  async tell(word: object): Promise<void> {
    const child = this.#child!;
    const heard = once(child, 'message');
    child.send(word);
    await heard;
  }

  operate<Result>(method: string, params: unknown = {}): Promise<Result> {
    return askControl<Result>(join(this.dataDir, 'control.sock'), method, params);
  }

  async createGroup(title: string): Promise<TestGroup> {
    const info = await this.operate<{ id: number; webhook: string }>('groups.create', { title });
    const token = info.webhook.split('/').at(-1)!;
    return { id: info.id, token, webhook: `${this.url}/v1/webhooks/${token}` };
  }

  /** Stops the server cleanly, which stops its database too, and removes the folder. */
  async remove(): Promise<void> {
    if (this.#child === null) await this.start();
    await this.end('SIGTERM');
    await rm(this.dataDir, { recursive: true, force: true });
  }

  /** Ends the server and its database in any state, and removes the folder. Idempotent. */
  async discard(): Promise<void> {
    this.signal('SIGCONT');
    await this.end('SIGKILL');
    const clusterDir = join(this.dataDir, 'postgresql');
    const postmaster = await findPostmaster(clusterDir);
    if (postmaster !== null) {
      process.kill(postmaster.pid, 'SIGQUIT');
      await waitUntilGone(postmaster.pid, clusterDir, HANG_MS);
    }
    await rm(this.dataDir, { recursive: true, force: true, maxRetries: 3 });
  }
}
