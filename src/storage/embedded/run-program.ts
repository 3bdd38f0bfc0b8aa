import { spawn } from 'node:child_process';

/** The result of a program contains at most this many characters from the end of each output stream. */
const MAX_OUTPUT_CHARS = 64 * 1024;

/** A program with its arguments, and the uid and gid to start it with (those of this process if undefined). */
export interface ProgramCommand {
  readonly programPath: string;
  readonly args: readonly string[];
  readonly identity: { readonly uid?: number; readonly gid?: number };
}

/** The result of a program. `exitCode` is null when a signal ended it, as after a time-out. */
interface ProgramResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * The environment of PostgreSQL's programs: without Klatch's secrets, PG* variables and the host's locale.
 * LD_LIBRARY_PATH stays, since an unpacked release may need it to find its C library.
 */
export function programEnvironment(): Record<string, string> {
  const { PATH, LD_LIBRARY_PATH } = process.env;
  const environment: Record<string, string> = { PATH: PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', TZ: 'UTC' };
  if (LD_LIBRARY_PATH !== undefined) environment['LD_LIBRARY_PATH'] = LD_LIBRARY_PATH;
  return environment;
}

/** Runs a program to its end, or kills it after `timeoutMs`. Rejects only when it cannot be started at all. */
export async function runProgram(command: ProgramCommand, timeoutMs: number): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    // The program runs in '/': getcwd fails for a user who cannot enter Klatch's working directory, and older versions
    // of initdb then stop.
    const child = spawn(command.programPath, command.args, {
      ...command.identity,
      cwd: '/',
      env: programEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout = (stdout + chunk).slice(-MAX_OUTPUT_CHARS);
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      stderr = (stderr + chunk).slice(-MAX_OUTPUT_CHARS);
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ exitCode: code, stdout, stderr }));
  });
}

/** The last lines of a text, without empty ones. */
export function lastLines(text: string, count: number): string {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-count)
    .join('\n');
}
