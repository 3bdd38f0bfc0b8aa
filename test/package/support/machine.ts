import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, rmdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from '../../support/eventually.ts';
import { run, type Ran } from './run.ts';

/** The source tree. */
export const ROOT = resolve(import.meta.dirname, '../../..');
/** Where the machines' changes live while they run. */
const MACHINES_DIR = join(ROOT, 'build/machines');
const START_MS = 60_000;
/** What a command in a machine finds in its environment, as `env -i` of a login as root has it. */
const ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  USER: 'root',
  TERM: 'dumb',
};

/**
 * What runs as process 1: nothing but a reaper (commands are run from outside, as in a machine of before systemd);
 * systemd; or a reaper in a root that has four device nodes and no other luxury.
 */
export type Init = 'none' | 'systemd' | 'bare';

/** How a command runs in a machine. */
export interface InsideOptions {
  readonly timeoutMs?: number;
  /** Over those of a login as root. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** The user and the group that it runs as; root if not given. */
  readonly uid?: number;
}

/**
 * A root of its own with its own processes, mounts and host name, on this machine's kernel and in its network: it stands
 * for a machine on which Klatch is installed. What is changed in it goes with it.
 */
export class Machine {
  readonly #workDir: string;
  readonly #unshare: ChildProcess;
  readonly #cgroup: string | null;
  #pid = 0;
  #stopped = false;

  private constructor(workDir: string, unshare: ChildProcess, cgroup: string | null) {
    this.#workDir = workDir;
    this.#unshare = unshare;
    this.#cgroup = cgroup;
  }

  /** Starts one from folders that hold its root, the upper ones first; they are not changed. */
  static async start(lowerDirs: readonly string[], init: Init = 'none'): Promise<Machine> {
    mkdirSync(MACHINES_DIR, { recursive: true });
    const workDir = mkdtempSync(join(MACHINES_DIR, `${process.pid}-`));
    const cgroup = init === 'systemd' ? makeCgroup() : null;
    const script = join(import.meta.dirname, 'machine.sh');
    const enter = 'if [ -n "$1" ]; then echo 0 >"$1/cgroup.procs"; fi; shift; exec "$@"';
    const namespaces = init === 'systemd' ? ['-m', '-p', '-u', '-i', '-C'] : ['-m', '-p', '-u', '-i'];
    // Whoever dies first takes the rest along: this process unshare, unshare the machine.
    const unshare = ['setpriv', '--pdeathsig', 'KILL', 'unshare', ...namespaces, '--fork', '--kill-child=KILL'];
    const args = ['-c', enter, 'sh', cgroup ?? '', ...unshare, '/bin/sh', script, lowerDirs.join(':'), workDir, init];
    const machine = new Machine(workDir, spawn('/bin/sh', args, { stdio: ['pipe', 'pipe', 'pipe'] }), cgroup);
    try {
      await machine.#booted(init);
    } catch (error) {
      await machine.stop();
      throw error;
    }
    return machine;
  }

  /** The machine's process 1, as this machine counts. */
  get pid(): number {
    return this.#pid;
  }

  /** A path of the machine as this process can read it. A link in it that is absolute would lead out of the machine. */
  path(path: string): string {
    return join(`/proc/${this.#pid}/root`, path);
  }

  /** Runs a command line in the machine. It may use a minute unless told otherwise. */
  async sh(line: string, options: InsideOptions = {}): Promise<Ran> {
    const { timeoutMs = 60_000, env = {}, input, uid } = options;
    // The command is ended inside, with what it started: killing nsenter would leave it behind.
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

  /** Writes a file, with the folders above it. */
  async write(path: string, text: string, mode = '644'): Promise<void> {
    await this.must(`mkdir -p "$(dirname '${path}')" && cat > '${path}' && chmod ${mode} '${path}'`, { input: text });
  }

  /** Ends every process in it, and removes what it changed. Idempotent. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    const { exitCode, signalCode } = this.#unshare;
    if (exitCode === null && signalCode === null) {
      const exited = once(this.#unshare, 'exit');
      if (this.#pid > 0) process.kill(this.#pid, 'SIGKILL');
      else this.#unshare.kill('SIGKILL');
      await exited;
    }
    if (this.#cgroup !== null) await removeCgroup(this.#cgroup);
    rmSync(this.#workDir, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Resolves when commands can be run in it; for systemd, when it has started what it starts by itself. */
  async #booted(init: Init): Promise<void> {
    const said: string[] = [];
    this.#unshare.stdin!.on('error', () => {});
    this.#unshare.stderr!.setEncoding('utf8').on('data', (text: string) => said.push(text));
    const lines = createInterface({ input: this.#unshare.stdout! });
    const [line] = (await Promise.race([once(lines, 'line'), once(lines, 'close')])) as [string | undefined];
    if (line === undefined) throw new Error(`the machine did not start: ${said.join('')}`);
    this.#pid = Number(line);
    // Until then the process is the script, whose root is the one outside.
    await eventually(
      async () => readFileSync(`/proc/${this.#pid}/cmdline`, 'utf8'),
      (command) => !command.includes('machine.sh'),
      START_MS,
    );
    if (init === 'systemd') await this.#systemdStarted();
  }

  async #systemdStarted(): Promise<void> {
    await eventually(
      async () => (await this.sh('systemctl is-system-running')).stdout.trim(),
      (state) => state === 'running' || state === 'degraded',
      START_MS,
    );
  }
}

/** Removes what machines left whose test was killed. */
export function removeLeftOvers(): void {
  if (!existsSync(MACHINES_DIR)) return;
  for (const name of readdirSync(MACHINES_DIR)) {
    if (!existsSync(`/proc/${name.split('-')[0]}`)) rmSync(join(MACHINES_DIR, name), { recursive: true, force: true });
  }
}

/** A cgroup (version 2) of its own, that systemd sees as the whole tree. */
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
