import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { askControl } from './control.ts';
import { eventually } from './eventually.ts';
import type { TestGroup } from './server.ts';

const PROGRAM = resolve(import.meta.dirname, '../../bin/klatch');
const KEPT_LINES = 200;
/** What its database is sealed with, for what is put into it past the server. */
export const SECRET = 'a secret for tests that is long enough to be taken';

/** A port that was free a moment ago: a server that is to be killed and started again needs the same one each time. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

/** The real program as a process of its own, with a folder of its own, to be stopped and killed. */
export class ServerProcess {
  readonly dataDir: string;
  readonly port: number;
  /** The last lines it logged, over all its lives. */
  readonly lines: string[] = [];
  readonly #configFile: string;
  readonly #within: readonly string[];
  #child: ChildProcess | null = null;

  private constructor(dataDir: string, port: number, within: readonly string[]) {
    this.dataDir = dataDir;
    this.port = port;
    this.#within = within;
    this.#configFile = join(dataDir, 'server.conf');
  }

  /**
   * Writes a configuration with the embedded database and `settings` (HOCON) over it; starts nothing yet.
   *
   * @param within a command that is to run the program: it becomes it (exec), so that signals reach the server
   */
  static async create(settings = '', within: readonly string[] = []): Promise<ServerProcess> {
    const dataDir = await mkdtemp(join(tmpdir(), 'klatch-process-'));
    const port = await freePort();
    const text = `
      secret = "${SECRET}"
      data-dir = "${dataDir}"
      services.postgresql.embedded = true
      http { interface = "127.0.0.1", port = ${port}, base-uri = "http://127.0.0.1:${port}" }
      metrics.port = 0
      delivery.allow = ["loopback"]
      log.format = json
      ${settings}`;
    const server = new ServerProcess(dataDir, port, within);
    await writeFile(server.#configFile, text, { mode: 0o600 });
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Of the running server. */
  get pid(): number {
    return this.#child!.pid!;
  }

  /** Starts the program and resolves when it is ready. Rejects with its last lines when it ends before. */
  async start(): Promise<void> {
    const [command, ...args] = [...this.#within, PROGRAM, 'serve', '--config', this.#configFile];
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        this.lines.push(line);
        if (this.lines.length > KEPT_LINES) this.lines.shift();
      });
    }
    await this.ready();
  }

  /** Resolves when the running server says that it can work; rejects with its last lines when it ends before. */
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
      60_000,
    );
  }

  /** Sends a signal and resolves to the exit code (null when the signal ended it). */
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
}
