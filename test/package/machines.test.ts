import { existsSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Host } from './support/host.ts';
import { ROOT } from './support/machine.ts';

/** The ids of the processes in a process namespace. */
function processesIn(namespace: string): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readlinkSync(`/proc/${name}/ns/pid`) === namespace;
    } catch {
      // The process has ended in the meantime.
      return false;
    }
  });
}

/** What machines leave outside of themselves: mounts and folders. */
function traces(): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const machines = join(ROOT, 'build/machines');
  return [...mounts.filter((line) => line.includes(machines)), ...(existsSync(machines) ? readdirSync(machines) : [])];
}

describe('a machine for trials', () => {
  test.each(['sysv', 'systemd'] as const)('leaves no process, no mount and no file behind (%s)', async (init) => {
    const before = traces();
    const host = await Host.start('bookworm', init);
    const namespace = readlinkSync(`/proc/${host.machine.pid}/ns/pid`);
    try {
      await host.machine.write('/root/note', 'a change');
      // Starts a process as a service does: detached, and without open files of the test.
      await host.machine.must('start-stop-daemon --start --background --exec /bin/sleep -- 1000');
      expect(processesIn(namespace).length).toBeGreaterThan(1);
    } finally {
      await host.stop();
    }
    expect(processesIn(namespace)).toEqual([]);
    expect(traces()).toEqual(before);
    expect(existsSync(join(ROOT, 'build/chroots/bookworm/root/note'))).toBe(false);
  });

  test('tells exit codes and output, and ends a command that takes too long with all that it started', async () => {
    const host = await Host.start('bookworm');
    const { machine } = host;
    try {
      expect(await machine.sh('echo out; echo err >&2; exit 7')).toEqual({ code: 7, stdout: 'out\n', stderr: 'err\n' });
      expect((await machine.sh('sleep 1000; true', { timeoutMs: 1_000 })).code).toBe(124);
      expect((await machine.sh('grep -lx sleep /proc/[0-9]*/comm')).stdout).toBe('');
    } finally {
      await host.stop();
    }
  });

  test('has a network in which nothing answers but the test', async () => {
    const host = await Host.start('bookworm');
    try {
      expect((await host.machine.sh('getent hosts example.org')).code).not.toBe(0);
    } finally {
      await host.stop();
    }
  });
});
