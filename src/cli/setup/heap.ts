import { accessSync, constants } from 'node:fs';
import { selfExecCommand, type Installation, type ProgramStart } from '../../installation.ts';

/**
 * The environment variable that marks a restarted process, so that it is restarted only once. Its value is the heap
 * limit in MiB.
 */
const HEAP_GUARD_VARIABLE = 'KLATCH_HEAP_MIB';
const MIB = 1024 ** 2;
/** The largest semi-space of the young generation that V8 allows. */
const MAX_SEMI_SPACE_MIB = 64;
/** V8 counts three semi-spaces as a part of the heap. Each gets at most 1/16 of the heap, so together they get 3/16. */
const SEMI_SPACE_COUNT = 3;
const HEAP_SHARE_PER_SEMI_SPACE = 1 / 16;

/** The parts of `process` that `restartServerWithHeapLimit` uses. Tests replace them. */
export interface ReplaceableServerProcess extends ProgramStart {
  readonly env: Record<string, string | undefined>;
  /**
   * Replaces the program of this process by another one, under the same process id. If that fails, the process aborts.
   */
  readonly execve: (file: string, args: string[], env: Record<string, string>) => void;
}

/**
 * Limits V8's heap to the setting `memory.heap`. V8 reads its limits only when it starts. So this function starts the
 * program again in the same process, before anything is open. Returns if the limit is already in force, or if
 * `heapBytes` `heapBytes` is null (V8's own limit). Throws the system's error if the program's file cannot be executed.
 */
export function restartServerWithHeapLimit(
  heapBytes: number | null,
  installation: Installation,
  process: ReplaceableServerProcess,
): void {
  if (heapBytes === null) return;
  const heapMib = String(Math.floor(heapBytes / MIB));
  if (process.env[HEAP_GUARD_VARIABLE] === heapMib) return;
  const { file, name, args } = selfExecCommand(installation, process, process.argv.slice(2));
  // Checked first, since a failing execve ends the process without an understandable message.
  accessSync(file, constants.X_OK);
  const nodeOptions = [process.env['NODE_OPTIONS'], heapOptions(Number(heapMib))].filter(Boolean).join(' ');
  process.execve(file, [name, ...args], {
    ...withoutUndefined(process.env),
    [HEAP_GUARD_VARIABLE]: heapMib,
    NODE_OPTIONS: nodeOptions,
  });
}

/**
 * V8's options for a total heap of this many MiB. V8 reports and enforces the sum of the old space and three
 * semi-spaces. The size of a semi-space is a power of two (seen on Node 24.21: exact from 64 MiB to 64 GiB).
 */
export function heapOptions(heapMib: number): string {
  const shareMib = 2 ** Math.floor(Math.log2(heapMib * HEAP_SHARE_PER_SEMI_SPACE));
  const semiSpaceMib = Math.max(1, Math.min(MAX_SEMI_SPACE_MIB, shareMib));
  return `--max-old-space-size=${heapMib - SEMI_SPACE_COUNT * semiSpaceMib} --max-semi-space-size=${semiSpaceMib}`;
}

function withoutUndefined(env: ReplaceableServerProcess['env']): Record<string, string> {
  const entries = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries);
}
