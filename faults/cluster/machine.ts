import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { promisify } from 'node:util';
import { until } from '../until.ts';

const run = promisify(execFile);

const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;

interface ProgramOptions {
  /** The user of the process; root by default. */
  readonly user?: string;
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface MachineProcess {
  readonly pid: number;
  /** The kernel's name of the process (`comm`): the name of its executable file. */
  readonly program: string;
}

/** Selects processes by the name of their program. */
export type ProgramFilter = (program: string) => boolean;

/** A network namespace with the processes that run in it. They share the file system of the whole machine. */
export class Machine {
  readonly name: string;
  readonly address: string;
  readonly #namespace: string;
  /** The target of the link `/proc/<pid>/ns/net` of each process of this machine. */
  readonly #link: string;

  constructor({ name, namespace, address }: { name: string; namespace: string; address: string }) {
    this.name = name;
    this.address = address;
    this.#namespace = namespace;
    this.#link = `net:[${statSync(`/run/netns/${namespace}`).ino}]`;
  }

  /** Runs `ip` with these arguments in the machine's network namespace. */
  async ip(...args: string[]): Promise<void> {
    await run('ip', ['-n', this.#namespace, ...args]);
  }

  /** Starts a program that keeps running; its output is appended to `logFile`. */
  async start(command: readonly string[], { user = 'root', logFile, env = {} }: ProgramOptions): Promise<ChildProcess> {
    const log = await open(logFile, 'a');
    const [program, ...args] = this.#commandOf(command, user);
    const child = spawn(program!, args, {
      cwd: '/',
      env: { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8', TZ: 'UTC', ...env },
      stdio: ['ignore', log.fd, log.fd],
    });
    // A failed start needs no handling here: the caller that waits for the program notices it.
    child.on('error', () => {});
    await log.close();
    return child;
  }

  /** Runs a program to its end and resolves to its output. Rejects if the program fails, with its error output. */
  async run(command: readonly string[], user = 'root'): Promise<string> {
    const [program, ...args] = this.#commandOf(command, user);
    const env = { ...process.env, LC_ALL: 'C.UTF-8' };
    const { stdout } = await run(program!, args, { cwd: '/', env, maxBuffer: MAX_OUTPUT_BYTES });
    return stdout;
  }

  /** Sends a signal to the processes that `chosen` selects, and returns their number. */
  signal(signal: NodeJS.Signals, chosen: ProgramFilter): number {
    const found = this.#processes().filter(({ program }) => chosen(program));
    for (const { pid } of found) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        // The process has ended in the meantime.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
    return found.length;
  }

  /** Kills the chosen processes with -9, and those that they start in the meantime. Resolves when none is left. */
  async killAll(chosen: ProgramFilter): Promise<void> {
    await until(`no such program runs on ${this.name}`, () => this.signal('SIGKILL', chosen) === 0);
  }

  /** Whether a process that `chosen` selects runs. */
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
        // A zombie has no namespace, so it is left out.
        if (readlinkSync(`/proc/${entry}/ns/net`) !== this.#link) return [];
        return [{ pid: Number(entry), program: readFileSync(`/proc/${entry}/comm`, 'utf8').trim() }];
      } catch {
        return [];
      }
    });
  }
}
