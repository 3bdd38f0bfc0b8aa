import { spawn } from 'node:child_process';

/** The result of a command. */
export interface Ran {
  /** The exit code. After a signal: 128 plus its number, as in shells. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly timeoutMs?: number;
  readonly cwd?: string;
  /** The environment of the command, instead of that of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

const TIMEOUT_MS = 120_000;
/** A process that a command left running may hold the command's output open for this time at most. */
const HELD_OUTPUT_MS = 3_000;
const KEPT_OUTPUT = 4 * 1024 * 1024;
const SIGNAL_CODES: Readonly<Record<string, number>> = { SIGHUP: 129, SIGINT: 130, SIGKILL: 137, SIGTERM: 143 };

/**
 * Runs a command to its end. Rejects when it takes longer than `timeoutMs`, after which it is killed. Also rejects when
 * the command has ended and a process that it started still holds its output open. A caller over ssh or in a pipe would
 * then wait for ever.
 */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { timeoutMs = TIMEOUT_MS, cwd, env, input } = options;
  const child = spawn(command, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: env ?? process.env,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]!.setEncoding('utf8').on('data', (text: string) => {
      if (output[name].length < KEPT_OUTPUT) output[name] += text;
    });
  }
  child.stdin?.on('error', () => {}).end(input);
  const said = (): string => `${[command, ...args].join(' ')}\n${output.stdout}${output.stderr}`;
  return new Promise((resolve, reject) => {
    let held: NodeJS.Timeout | undefined;
    const deadline = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`not done after ${timeoutMs} ms: ${said()}`));
    }, timeoutMs);
    child.on('error', reject);
    child.on('exit', () => {
      clearTimeout(deadline);
      held = setTimeout(() => {
        child.stdout!.destroy();
        child.stderr!.destroy();
        reject(new Error(`ended, but something it started still holds its output: ${said()}`));
      }, HELD_OUTPUT_MS);
    });
    child.on('close', (code, signal) => {
      clearTimeout(held);
      resolve({ code: code ?? SIGNAL_CODES[signal!] ?? 255, ...output });
    });
  });
}

/** Like `run`, for a command that has to succeed. It rejects with the output of a command that fails. */
export async function mustRun(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const ran = await run(command, args, options);
  if (ran.code !== 0)
    throw new Error(`${[command, ...args].join(' ')} ended with ${ran.code}:\n${ran.stdout}${ran.stderr}`);
  return ran.stdout;
}
