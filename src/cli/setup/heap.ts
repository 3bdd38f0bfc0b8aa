import { accessSync, constants } from 'node:fs';
import { selfExecCommand, type Installation, type ProgramStart } from '../../installation.ts';

/** Says that this process was started anew for this many MiB, so that it happens once. */
const HEAP_GUARD_VARIABLE = 'KLATCH_HEAP_MIB';
const MIB = 1024 ** 2;
/** V8's own bound for each of the parts that new objects are made in. */
const MAX_SEMI_SPACE_MIB = 64;
/** Of these parts V8 reckons with three, so that they take at most 3/16 of a small heap. */
const SEMI_SPACE_COUNT = 3;
const HEAP_SHARE_PER_SEMI_SPACE = 1 / 16;

/** The process as `restartServerWithHeapLimit` sees and replaces it. */
export interface ReplaceableServerProcess extends ProgramStart {
  readonly env: Record<string, string | undefined>;
  /** Replaces the program of this process and keeps its id; the process ends where that fails. */
  readonly execve: (file: string, args: string[], env: Record<string, string>) => void;
}

/**
 * Bounds the heap at memory.heap: V8 reads its bounds when it starts and never again, so the program is started anew in
 * this process, once, before it has opened anything. `bytes` null leaves V8 its own bound. Returns where the bound is in
 * force already. Throws the system's error where the program's file cannot be run.
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
  // Asked first: what fails in execve ends the process without a word that a person understands.
  accessSync(file, constants.X_OK);
  const options = [process.env['NODE_OPTIONS'], heapOptions(Number(heapMib))].filter(Boolean).join(' ');
  process.execve(file, [name, ...args], {
    ...withoutUndefined(process.env),
    [HEAP_GUARD_VARIABLE]: heapMib,
    NODE_OPTIONS: options,
  });
}

/**
 * Options of V8 for a heap of so many MiB in all. What it reports as its bound, and goes by, is the old space and three
 * times a semi-space, whose size is a power of two (seen on Node 24.21: exact from 64 MiB to 64 GiB).
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
