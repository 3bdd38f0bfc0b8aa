import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, rmdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from '../../support/eventually.ts';
import { run, type Ran } from './run.ts';

/** The root folder of the source tree. */
export const ROOT = resolve(import.meta.dirname, '../../..');
/** The folder for the files that running machines have changed. */
const MACHINES_DIR = join(ROOT, 'build/machines');
/** The environment of a command in a machine: that of a root login with `env -i`. */
const ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  USER: 'root',
  TERM: 'dumb',
};

/**
 * The init process (process 1) of a machine:
 * - `none`: a process that only reaps others. Commands run from outside, as on a machine before systemd.
 * - `systemd`: systemd.
 * - `bare`: as `none`, in a root with four device nodes and nothing else.
 */
export type Init = 'none' | 'systemd' | 'bare';

export interface InsideOptions {
  readonly timeoutMs?: number;
  /** Variables that override those of a root login. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** The user and the group of the command; root by default. */
  readonly uid?: number;
}

/**
 * A machine for an installation of Klatch. It is a root folder with processes, mounts and a host name of its own, on
 * the kernel and in the network of this machine. Its end discards all changes in it.
 */
export class Machine {
  readonly #lowerDirs: readonly string[];
  readonly #init: Init;
  readonly #workDir: string;
  #unshare: ChildProcess | null = null;
  #cgroup: string | null = null;
  #pid = 0;

  private constructor(lowerDirs: readonly string[], init: Init) {
    this.#lowerDirs = lowerDirs;
    this.#init = init;
    mkdirSync(MACHINES_DIR, { recursive: true });
    this.#workDir = mkdtempSync(join(MACHINES_DIR, `${process.pid}-`));
  }

  /** Starts a machine whose root is made of these folders, the upper ones first. The folders are not changed. */
  static async start(lowerDirs: readonly string[], init: Init = 'none'): Promise<Machine> {
    const machine = new Machine(lowerDirs, init);
    try {
      await machine.#boot();
    } catch (error) {
      await machine.stop();
      throw error;
    }
    return machine;
  }

  /** The process id of the machine's init process, as this test sees it. */
  get pid(): number {
    return this.#pid;
  }

  /**
   * The path by which the test opens a file of the machine. An absolute symbolic link would lead out of the machine.
   */
  path(path: string): string {
    return join(`/proc/${this.#pid}/root`, path);
  }

  /** Runs a command line in the machine. By default it may take a minute. */
  async sh(line: string, options: InsideOptions = {}): Promise<Ran> {
    const { timeoutMs = 60_000, env = {}, input, uid } = options;
    // `timeout` runs in the machine and ends the command with its children. A kill of nsenter would leave them running.
    const inside = ['timeout', '-k', '5', String(Math.ceil(timeoutMs / 1000)), 'sh', '-c', line];
    const namespaces = ['-m', '-p', '-u', '-i', ...(this.#cgroup === null ? [] : ['-C']), '-r', '-w'];
    const identity = uid === undefined ? [] : ['-S', String(uid), '-G', String(uid)];
    return run('nsenter', ['-t', String(this.#pid), ...namespaces, ...identity, '--', ...inside], {
      timeoutMs: timeoutMs + 10_000,
      env: { ...ENV, ...env },
      ...(input === undefined ? {} : { input }),
    });
  }

  /** Like `sh`, for a command that has to succeed; resolves to its standard output. */
  async must(line: string, options: InsideOptions = {}): Promise<string> {
    const ran = await this.sh(line, options);
    if (ran.code !== 0) throw new Error(`${line}\nended with ${ran.code}:\n${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  }

  /** Writes a file, and creates the folders above it. */
  async write(path: string, text: string, mode = '644'): Promise<void> {
    await this.must(`mkdir -p "$(dirname '${path}')" && cat > '${path}' && chmod ${mode} '${path}'`, { input: text });
  }

  /** Kills all processes of the machine at once, as a loss of power does, and starts it again with its files. */
  async reboot(): Promise<void> {
    await this.#halt();
    await this.#boot();
  }

  /** Kills all processes of the machine, and discards its changes. Idempotent. */
  async stop(): Promise<void> {
    await this.#halt();
    rmSync(this.#workDir, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Resolves when the machine can run commands; with systemd, when its default units have started. */
  async #boot(): Promise<void> {
    const isSystemd = this.#init === 'systemd';
    this.#cgroup = isSystemd ? makeCgroup() : null;
    const script = join(import.meta.dirname, 'machine.sh');
    const enter = 'if [ -n "$1" ]; then echo 0 >"$1/cgroup.procs"; fi; shift; exec "$@"';
    const namespaces = ['-m', '-p', '-u', '-i', ...(isSystemd ? ['-C'] : [])];
    // If this test process ends, the kernel kills unshare, and then the init process of the machine.
    const unshare = ['setpriv', '--pdeathsig', 'KILL', 'unshare', ...namespaces, '--fork', '--kill-child=KILL'];
    const what = [script, this.#lowerDirs.join(':'), this.#workDir, this.#init];
    const child = spawn('/bin/sh', ['-c', enter, 'sh', this.#cgroup ?? '', ...unshare, '/bin/sh', ...what], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#unshare = child;
    const said: string[] = [];
    child.stdin.on('error', () => {});
    child.stderr.setEncoding('utf8').on('data', (text: string) => said.push(text));
    const lines = createInterface({ input: child.stdout });
    const [line] = (await Promise.race([once(lines, 'line'), once(lines, 'close')])) as [string | undefined];
    if (line === undefined) throw new Error(`the machine did not start: ${said.join('')}`);
    this.#pid = Number(line);
    // At first this process is machine.sh, whose root is still that of the host.
    await eventually(
      async () => readFileSync(`/proc/${this.#pid}/cmdline`, 'utf8'),
      (command) => !command.includes('machine.sh'),
    );
    if (isSystemd) await this.#systemdStarted();
  }

  async #halt(): Promise<void> {
    const child = this.#unshare;
    this.#unshare = null;
    if (child !== null && child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      if (this.#pid > 0) process.kill(this.#pid, 'SIGKILL');
      else child.kill('SIGKILL');
      await exited;
    }
    this.#pid = 0;
    if (this.#cgroup !== null) await removeCgroup(this.#cgroup);
    this.#cgroup = null;
  }

  async #systemdStarted(): Promise<void> {
    await eventually(
      async () => (await this.sh('systemctl is-system-running')).stdout.trim(),
      (state) => state === 'running' || state === 'degraded',
    );
  }
}

/** Removes the remains of machines whose test was killed. */
export function removeLeftOvers(): void {
  if (!existsSync(MACHINES_DIR)) return;
  for (const name of readdirSync(MACHINES_DIR)) {
    if (!existsSync(`/proc/${name.split('-')[0]}`)) rmSync(join(MACHINES_DIR, name), { recursive: true, force: true });
  }
}

/** Creates a cgroup (version 2), which systemd in the machine sees as the whole tree. */
function makeCgroup(): string {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const tree = mounts.map((line) => line.split(' ')).find(([, , type]) => type === 'cgroup2')?.[1];
  if (tree === undefined) throw new Error('no cgroup2 is mounted: systemd cannot be tried here');
  const folder = join(tree, `klatch-machine-${process.pid}-${Math.floor(performance.now() * 1000)}`);
  mkdirSync(folder);
  return folder;
}

async function removeCgroup(folder: string): Promise<void> {
  // Folders in a cgroup can only be removed from the innermost outwards, once their processes are gone.
  const all = readdirSync(folder, { withFileTypes: true, recursive: true }).filter((entry) => entry.isDirectory());
  const folders = [folder, ...all.map((entry) => join(entry.parentPath, entry.name))];
  folders.sort((a, b) => b.length - a.length);
  await eventually(
    async () => {
      try {
        for (const each of folders) if (existsSync(each)) rmdirSync(each);
        return 'removed';
      } catch (error) {
        return (error as NodeJS.ErrnoException).code;
      }
    },
    (outcome) => outcome === 'removed',
  );
}
