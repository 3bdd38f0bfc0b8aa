import { accessSync, constants } from 'node:fs';
import { selfExecCommand, type Installation, type ProgramStart } from '../../installation.ts';

/** Marks a process that was restarted with a heap of this many MiB, so that the restart happens only once. */
const HEAP_GUARD_VARIABLE = 'KLATCH_HEAP_MIB';
const MIB = 1024 ** 2;
/** V8's own bound for each semi-space of the young generation. */
const MAX_SEMI_SPACE_MIB = 64;
/** V8 counts three semi-spaces, each of at most 1/16 of the heap: together they take at most 3/16 of it. */
const SEMI_SPACE_COUNT = 3;
const HEAP_SHARE_PER_SEMI_SPACE = 1 / 16;

/** The process as `restartServerWithHeapLimit` sees and replaces it. */
export interface ReplaceableServerProcess extends ProgramStart {
  readonly env: Record<string, string | undefined>;
  /** Runs another program in this process, under the same process id; if that fails, the process aborts. */
  readonly execve: (file: string, args: string[], env: Record<string, string>) => void;
}

/**
 * Bounds the heap at `memory.heap`. V8 reads its bounds only when it starts, so this replaces the program of this
 * process once, before it has opened anything. `bytes` null leaves V8 its own bound. Returns if the bound is already in
 * force. Throws the system's error if the program's file cannot be executed.
 */
export function restartServerWithHeapLimit(
  bytes: number | null,
  installation: Installation,
  process: ReplaceableServerProcess,
): void {
  if (bytes === null) return;
  const heapMib = String(Math.floor(bytes / MIB));
  if (process.env[HEAP_GUARD_VARIABLE] === heapMib) return;
  const { file, name, args } = selfExecCommand(installation, process, process.argv.slice(2));
  // Checked first: a failing execve ends the process without an understandable message.
  accessSync(file, constants.X_OK);
  const options = [process.env['NODE_OPTIONS'], heapOptions(Number(heapMib))].filter(Boolean).join(' ');
  process.execve(file, [name, ...args], {
    ...withoutUndefined(process.env),
    [HEAP_GUARD_VARIABLE]: heapMib,
    NODE_OPTIONS: options,
  });
}

/**
 * V8's options for a total heap of this many MiB. V8 reports and enforces the sum of the old space and three
 * semi-spaces. The size of a semi-space is a power of two (seen on Node 24.21: exact from 64 MiB to 64 GiB).
 */
export function heapOptions(heapMib: number): string {
  const share = 2 ** Math.floor(Math.log2(heapMib * HEAP_SHARE_PER_SEMI_SPACE));
  const semiSpaceMib = Math.max(1, Math.min(MAX_SEMI_SPACE_MIB, share));
  return `--max-old-space-size=${heapMib - SEMI_SPACE_COUNT * semiSpaceMib} --max-semi-space-size=${semiSpaceMib}`;
}

function withoutUndefined(env: ReplaceableServerProcess['env']): Record<string, string> {
  const entries = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries);
}
