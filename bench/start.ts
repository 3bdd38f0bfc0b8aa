import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pack } from '../scripts/package/binary.ts';
import { makeParts } from '../scripts/package/parts.ts';
import { BUILD, NODE } from '../scripts/package/paths.ts';
import { LOADER } from '../scripts/package/runtime.ts';
import { findControlSocket } from '../src/data-dir/control-socket-path.ts';
import { askControl } from '../test/support/control.ts';
import { ServerProcess } from '../test/support/server-process.ts';
import { median, report, round } from './support/report.ts';

const ROUNDS = 15;
/** The start of `klatch --version` may take at most this many times as long as that of the empty program. */
const VERSION_TARGET = 1.5;
/**
 * The start of `klatch status` may take at most this many times as long as that of the empty program. The time that the
 * server needs for its answer is left out.
 */
const STATUS_TARGET = 2.5;
/** Ticks per second in /proc/self/stat; 100 on every Linux that Node supports. */
const TICKS = 100;

/** The time that a program took from its start to its exit. */
interface Start {
  readonly wallMs: number;
  readonly cpuMs: number;
}

type Name = 'node' | 'empty' | 'version' | 'status';

/** Measures the start of the packed program. The baseline is an empty program that this run packs in the same way. */
export async function benchStart(): Promise<boolean> {
  const { binary, runtime } = await makeParts();
  const empty = join(BUILD, 'empty');
  writeFileSync(join(BUILD, 'empty.cjs'), '');
  await pack(empty, 'empty.cjs', {});
  const packed = (program: string, ...args: string[]): string[] => {
    return [join(runtime.folder, LOADER), '--library-path', runtime.folder, '--argv0', 'klatch', program, ...args];
  };
  const server = await ServerProcess.create();
  try {
    await server.start();
    const commands: Record<Name, readonly string[]> = {
      node: [NODE, '-e', '0'],
      empty: packed(empty),
      version: packed(binary, '--version'),
      status: packed(binary, 'status', '--config', join(server.dataDir, 'server.conf')),
    };
    const starts: Record<Name, Start[]> = { node: [], empty: [], version: [], status: [] };
    const answerMs: number[] = [];
    for (const command of Object.values(commands)) await start(command);
    for (let n = 0; n < ROUNDS; n += 1) {
      for (const name of Object.keys(commands) as Name[]) starts[name].push(await start(commands[name]));
      const asked = performance.now();
      await askControl(findControlSocket(server.dataDir), 'server.status', {});
      answerMs.push(performance.now() - asked);
    }
    return print(starts, median(answerMs));
  } finally {
    await server.remove();
  }
}

async function start([command, ...args]: readonly string[]): Promise<Start> {
  const cpuBefore = childrenCpuMs();
  const started = performance.now();
  const child = spawn(command!, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${args.at(-1)} ended with ${code}`);
  return { wallMs: performance.now() - started, cpuMs: childrenCpuMs() - cpuBefore };
}

/**
 * The CPU time (user and system) of the child processes that have ended and that this process has waited for, in ms.
 */
function childrenCpuMs(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[13]) + Number(fields[14])) / TICKS) * 1000;
}

function print(starts: Readonly<Record<Name, readonly Start[]>>, answerMs: number): boolean {
  const wall = (name: Name): number => median(starts[name].map(({ wallMs }) => wallMs));
  // A tick is 10 ms, so the mean is more exact than the median.
  const cpu = (name: Name): number => starts[name].reduce((sum, { cpuMs }) => sum + cpuMs, 0) / starts[name].length;
  const rows = (Object.keys(starts) as Name[]).map((name) => ({
    start: name,
    'wall ms': round(wall(name), 1),
    'CPU ms': round(cpu(name), 1),
    'times empty': round(wall(name) / wall('empty'), 2),
    'CPU times empty': round(cpu(name) / cpu('empty'), 2),
  }));
  const version = wall('version') / wall('empty');
  const status = (wall('status') - answerMs) / wall('empty');
  report(`start: medians of ${ROUNDS}; the server answers in ${round(answerMs, 1)} ms`, rows, {
    bench: 'start',
    ratio: round(version, 2),
    baseline: 'an empty program packed in the same way; the ratio is that of klatch --version, at most',
    rate: round(1000 / wall('version'), 1),
    target: VERSION_TARGET,
    'status without the answer': round(status, 2),
    'target of status': STATUS_TARGET,
    'CPU of version': round(cpu('version') / cpu('empty'), 2),
    'CPU of status': round(cpu('status') / cpu('empty'), 2),
  });
  return version <= VERSION_TARGET && status <= STATUS_TARGET;
}
