import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ConnectionTarget } from '../../src/storage/db/connection.ts';
import { MAIN } from '../support/program-files.ts';

export const root = join(import.meta.dirname, '../..');
export const SECRET = 'QpE7mVt3xkLr9sWzYb2nHd8fJc4gUa6o';

/** The result of a run of the program. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** One line of a server's log. */
export interface Event {
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** The real program in a process of its own; `stop` kills it if it still runs. */
export class Program {
  readonly process: ChildProcess;
  readonly ended: Promise<Ended>;
  readonly #events: Event[] = [];
  #stdout = '';
  #stderr = '';
  readonly #waiting = new Set<() => void>();
  #hasEnded = false;

  constructor(
    command: readonly [string, ...string[]],
    options: { env?: NodeJS.ProcessEnv; cwd?: string; input?: string | Buffer; openInput?: boolean } = {},
  ) {
    const env = { ...process.env, KLATCH_CONFIG: '', NODE_OPTIONS: '', ...options.env };
    const [file, ...args] = command;
    const child = spawn(file, args, { env, stdio: ['pipe', 'pipe', 'pipe'], cwd: options.cwd });
    this.process = child;
    // The error of a program that exits without reading its input is no failure of the test.
    child.stdin.on('error', () => {});
    if (options.openInput !== true) child.stdin.end(options.input);
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#stdout += `${line}\n`;
      if (line.startsWith('{"level"')) this.#events.push(JSON.parse(line) as Event);
      this.#look();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
      this.#look();
    });
    this.ended = once(child, 'close').then(([code, signal]) => {
      this.#hasEnded = true;
      this.#look();
      const [stdout, stderr] = [this.#stdout, this.#stderr];
      return { code: code as number | null, signal: signal as NodeJS.Signals | null, stdout, stderr };
    });
  }

  get pid(): number {
    return this.process.pid!;
  }

  /** Resolves with the first event of that name in the log. Rejects when the program exits without it. */
  async event(name: string): Promise<Event> {
    return this.#wait(name, () => this.#events.find(({ msg }) => msg === name));
  }

  /** Resolves with the text of the first capture group, when standard output so far matches `pattern`. */
  async text(pattern: RegExp): Promise<string> {
    return this.#wait(String(pattern), () => pattern.exec(this.#stdout)?.[1]);
  }

  /** Resolves with the text of the first capture group, when standard error so far matches `pattern`. */
  async remark(pattern: RegExp): Promise<string> {
    return this.#wait(String(pattern), () => pattern.exec(this.#stderr)?.[1]);
  }

  async stop(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.ended;
  }

  async #wait<T>(what: string, find: () => T | undefined): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (this.#hasEnded) throw new Error(`ended without ${what}:\n${JSON.stringify(await this.ended, null, 2)}`);
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
      });
    }
  }

  #look(): void {
    for (const waiting of this.#waiting) waiting();
    this.#waiting.clear();
  }
}

/** A folder with a configuration. It starts programs that use it. */
export class Workspace {
  readonly folder: string;
  readonly #programs: Program[] = [];

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async create(): Promise<Workspace> {
    return new Workspace(await mkdtemp(join(tmpdir(), 'klatch-cli-')));
  }

  get file(): string {
    return join(this.folder, 'server.conf');
  }

  get dataDir(): string {
    return join(this.folder, 'data');
  }

  /** Writes a complete configuration on a test database; `lines` come last, so that they take precedence. */
  async configure(target: ConnectionTarget, lines: readonly string[] = []): Promise<void> {
    const database = { host: target.host, port: target.port, db: target.database, user: target.user };
    await this.write([
      `secret = "${SECRET}"`,
      'http { base-uri = "http://klatch.example", port = 0 }',
      'metrics.port = 0',
      'endpoints = []',
      'data-dir = "data"',
      `services.postgresql = ${JSON.stringify({ ...database, password: '', unsafe: true })}`,
      'delivery.allow = ["loopback"]',
      ...lines,
    ]);
  }

  async write(lines: readonly string[]): Promise<void> {
    await writeFile(this.file, `${lines.join('\n')}\n`);
    await chmod(this.file, 0o640);
  }

  /** Starts the program with this configuration, and leaves it running. */
  start(args: readonly string[], env: NodeJS.ProcessEnv = {}): Program {
    const program = new Program([process.execPath, MAIN, ...args, '--config', this.file], { env });
    this.#programs.push(program);
    return program;
  }

  /** Starts the server and waits until it is ready. */
  async serve(): Promise<{ server: Program; url: string }> {
    const server = this.start(['serve']);
    const { port } = await server.event('ready');
    return { server, url: `http://127.0.0.1:${port as number}` };
  }

  async run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
    return this.start(args, env).ended;
  }

  /** Runs the program with this text on its standard input. */
  async pipe(input: string | Buffer, args: readonly string[]): Promise<Ended> {
    const program = new Program([process.execPath, MAIN, ...args, '--config', this.file], { input });
    this.#programs.push(program);
    return program.ended;
  }

  /** Starts the program, and keeps its standard input open. */
  open(args: readonly string[]): Program {
    const program = new Program([process.execPath, MAIN, ...args, '--config', this.file], { openInput: true });
    this.#programs.push(program);
    return program;
  }

  async remove(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.stop()));
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Runs the program with these arguments alone, without a configuration. */
export async function runKlatch(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return new Program([process.execPath, MAIN, ...args], { env }).ended;
}
