import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { promisify } from 'node:util';
import { until } from '../until.ts';

const run = promisify(execFile);

const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;

/** How a program of a machine is started. */
interface ProgramOptions {
  /** The user who runs it; root by default. */
  readonly user?: string;
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface MachineProcess {
  readonly pid: number;
  /** As the kernel calls it: the name of its file. */
  readonly program: string;
}

/** Chooses processes by the name of their program. */
export type ProgramFilter = (program: string) => boolean;

/** A network namespace with the processes that run in it. Files are those of the whole system. */
export class Machine {
  readonly name: string;
  readonly address: string;
  readonly #namespace: string;
  /** What the links of `/proc/<pid>/ns/net` say. */
  readonly #link: string;

  constructor({ name, namespace, address }: { name: string; namespace: string; address: string }) {
    this.name = name;
    this.address = address;
    this.#namespace = namespace;
    this.#link = `net:[${statSync(`/run/netns/${namespace}`).ino}]`;
  }

  /** Changes the network of the machine. */
  async ip(...args: string[]): Promise<void> {
    await run('ip', ['-n', this.#namespace, ...args]);
  }

  /** Starts a program that goes on; its output is appended to `logFile`. */
  async start(command: readonly string[], { user = 'root', logFile, env = {} }: ProgramOptions): Promise<ChildProcess> {
    const log = await open(logFile, 'a');
    const [program, ...args] = this.#commandOf(command, user);
    const child = spawn(program!, args, {
      cwd: '/',
      env: { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8', TZ: 'UTC', ...env },
      stdio: ['ignore', log.fd, log.fd],
    });
    // One that cannot be started is missed by whoever waits for it.
    child.on('error', () => {});
    await log.close();
    return child;
  }

  /** Runs a program to its end and resolves to what it printed. Rejects with what it complained of. */
  async run(command: readonly string[], user = 'root'): Promise<string> {
    const [program, ...args] = this.#commandOf(command, user);
    const env = { ...process.env, LC_ALL: 'C.UTF-8' };
    const { stdout } = await run(program!, args, { cwd: '/', env, maxBuffer: MAX_OUTPUT_BYTES });
    return stdout;
  }

  /** Sends a signal to the processes that `chosen` names, and says how many there were. */
  signal(signal: NodeJS.Signals, chosen: ProgramFilter): number {
    const found = this.#processes().filter(({ program }) => chosen(program));
    for (const { pid } of found) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        // It has ended by itself meanwhile.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
    return found.length;
  }

  /** Kills them with -9, and what they start meanwhile; resolves when none is left. */
  async killAll(chosen: ProgramFilter): Promise<void> {
    await until(`no such program runs on ${this.name}`, () => this.signal('SIGKILL', chosen) === 0);
  }

  /** Whether such a program runs. */
  runs(chosen: ProgramFilter): boolean {
    return this.#processes().some(({ program }) => chosen(program));
  }

  #commandOf(command: readonly string[], user: string): readonly string[] {
    const within = ['ip', 'netns', 'exec', this.#namespace];
    if (user === 'root') return [...within, ...command];
    return [...within, 'setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups', ...command];
  }

  #processes(): MachineProcess[] {
    return readdirSync('/proc').flatMap((entry) => {
      if (!/^\d+$/.test(entry)) return [];
      try {
        // One that has ended and is not waited for yet has no namespace any more.
        if (readlinkSync(`/proc/${entry}/ns/net`) !== this.#link) return [];
        return [{ pid: Number(entry), program: readFileSync(`/proc/${entry}/comm`, 'utf8').trim() }];
      } catch {
        return [];
      }
    });
  }
}
