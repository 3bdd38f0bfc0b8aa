import { getHeapStatistics } from 'node:v8';
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from '@jest/globals';
import { restartServerWithHeapLimit, heapOptions, type ReplaceableServerProcess } from '../../../src/cli/setup/heap.ts';
import type { Installation } from '../../../src/installation.ts';
import { createTestDatabase } from '../../support/database.ts';
import { Workspace } from '../program.ts';

const MIB = 1024 ** 2;

interface Call {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Record<string, string>;
}

function run(
  bytes: number | null,
  kind: Installation['kind'],
  env: Record<string, string | undefined> = {},
): readonly Call[] {
  const calls: Call[] = [];
  const fake: ReplaceableServerProcess = {
    argv: [process.execPath, '/somewhere/main.ts', 'serve', '--config', 'a b'],
    execArgv: ['--min-semi-space-size=16'],
    execPath: process.execPath,
    env,
    execve: (file, args, given) => calls.push({ file, args, env: given }),
  };
  restartServerWithHeapLimit(bytes, { kind, command: '/bin/sh', companionPostgresqlPackageBinDir: '' }, fake);
  return calls;
}

describe('memory.heap', () => {
  test.each([64, 100, 256, 512, 1_024, 4_096, 65_536])('of %i MiB is what V8 goes by', (mib) => {
    const { stdout } = spawnSync(process.execPath, ['-p', 'v8.getHeapStatistics().heap_size_limit'], {
      env: { NODE_OPTIONS: heapOptions(mib) },
      encoding: 'utf8',
    });
    expect(Number(stdout)).toBe(mib * MIB);
  });

  test('is in effect in a server, which keeps its process id; status shows it', async () => {
    const database = await createTestDatabase();
    const workspace = await Workspace.create();
    try {
      await workspace.configure(database.target, ['memory.heap = 256 MiB']);
      const { server } = await workspace.serve();
      const { stdout } = await workspace.run(['status', '--json']);
      expect(JSON.parse(stdout)).toMatchObject({ pid: server.pid, heap_limit_bytes: 256 * MIB });
      expect((await workspace.run(['status'])).stdout).toMatch(/\nheap: +at most 256 MiB\n/);
      expect(getHeapStatistics().heap_size_limit).not.toBe(256 * MIB);
    } finally {
      await workspace.remove();
      await database.drop();
    }
  });

  test('starts the same program with the same arguments, however it came onto the machine', () => {
    const rest = ['serve', '--config', 'a b'];
    expect(run(512 * MIB, 'source')).toMatchObject([
      { file: process.execPath, args: ['klatch', '--min-semi-space-size=16', '/somewhere/main.ts', ...rest] },
    ]);
    expect(run(512 * MIB, 'package')).toMatchObject([{ file: process.execPath, args: ['klatch', ...rest] }]);
    expect(run(512 * MIB, 'archive')).toMatchObject([{ file: '/bin/sh', args: ['/bin/sh', ...rest] }]);
  });

  test('is applied once, keeps what NODE_OPTIONS and the environment had, and is left alone when it is not set', () => {
    const [call] = run(512 * MIB, 'package', { NODE_OPTIONS: '--no-warnings', OTHER: 'x', MISSING: undefined });
    expect(call!.env).toMatchObject({ NODE_OPTIONS: `--no-warnings ${heapOptions(512)}`, OTHER: 'x' });
    expect(Object.keys(call!.env)).not.toContain('MISSING');
    expect(run(512 * MIB, 'package', call!.env)).toEqual([]);
    expect(run(null, 'package')).toEqual([]);
  });
});
