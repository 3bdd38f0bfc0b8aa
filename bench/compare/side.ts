import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { RoundResult } from '../bench-session.ts';
import { serverCpuSeconds } from '../support/cpu.ts';
import type { Tree } from './tree.ts';

/** The measurement of one tree within a pair. */
export interface Measurement {
  /** The rate in units of work a second, such as posts. */
  readonly rate: number;
  /**
   * CPU seconds of server and database for a unit of work. For whole runs the figure has an unknown factor, which is
   * the same for both trees.
   */
  readonly cpu: number;
}

const POLL_MS = 500;
/** Benchmarks whose rounds take a fixed time: a faster tree does more work in a round. */
const TIMED: readonly string[] = ['intake', 'fan-out'];

/** Whether the benchmarks of a tree can run round by round: older trees lack bench/session.ts. */
export function hasSessions({ folder }: Tree): boolean {
  return existsSync(join(folder, 'bench/session.ts'));
}

/** A benchmark of one tree that stays open between its rounds. */
export class Session {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  #units = 0;
  #seconds = 0;
  #cpuSeconds = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  }

  /** Resolves when the server is ready and warm. */
  static async open(tree: Tree, bench: string): Promise<Session> {
    const session = new Session(start(tree, ['bench/session.ts', bench]));
    await session.#answer();
    return session;
  }

  /** Runs a round and adds its result to `measured`. */
  async round(): Promise<void> {
    await this.#ask('prepare');
    const before = serverCpuSeconds(this.#child.pid!);
    const { units, seconds } = (await this.#ask('round')) as RoundResult;
    this.#cpuSeconds += serverCpuSeconds(this.#child.pid!) - before;
    this.#units += units;
    this.#seconds += seconds;
  }

  get measured(): Measurement {
    return { rate: this.#units / this.#seconds, cpu: this.#cpuSeconds / this.#units };
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.stdin!.end();
    await ended;
  }

  async #ask(line: string): Promise<unknown> {
    this.#child.stdin!.write(`${line}\n`);
    return this.#answer();
  }

  async #answer(): Promise<unknown> {
    const next = await this.#lines.next();
    if (next.done === true) throw new Error('a benchmark ended before its round did; what it said is above');
    return JSON.parse(next.value);
  }
}

/**
 * Runs a whole benchmark, with its baseline, of a tree without sessions. It reads the rate from the benchmark's line of
 * JSON. The CPU time is that of the whole run, including start and warm-up.
 */
export async function runWhole(tree: Tree, bench: string): Promise<Measurement> {
  const child = start(tree, ['bench/run.ts', bench]);
  child.stdin!.end();
  const lines: string[] = [];
  createInterface({ input: child.stdout! }).on('line', (line) => lines.push(line));
  let cpuSeconds = 0;
  const poll = setInterval(() => {
    cpuSeconds = Math.max(cpuSeconds, serverCpuSeconds(child.pid!));
  }, POLL_MS);
  try {
    await once(child, 'close');
  } finally {
    clearInterval(poll);
  }
  const rate = rateOf(lines, bench);
  if (rate === null) throw new Error(`${tree.name} printed no rate of ${bench}:\n${lines.slice(-10).join('\n')}`);
  return { rate, cpu: TIMED.includes(bench) ? cpuSeconds / rate : cpuSeconds };
}

/** The rate in the line of JSON that a benchmark prints; null where there is none. */
export function rateOf(lines: readonly string[], bench: string): number | null {
  for (const line of lines.filter((each) => each.startsWith('{')).toReversed()) {
    const found = JSON.parse(line) as { bench?: unknown; rate?: unknown };
    if (found.bench === bench && typeof found.rate === 'number' && found.rate > 0) return found.rate;
  }
  return null;
}

function start({ folder }: Tree, args: readonly string[]): ChildProcess {
  const node = join(folder, 'node_modules/.bin/node');
  // With the variable BASE, the benchmark itself would start a comparison.
  const env = { ...process.env, BASE: '' };
  return spawn(node, args, { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'], env });
}
