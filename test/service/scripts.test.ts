import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { exitCodes } from '../../src/cli/core/exit-codes.ts';

const root = join(import.meta.dirname, '../..');
const scripts = readdirSync(join(root, 'debian')).filter((name) =>
  /\.(init|preinst|postinst|prerm|postrm)$/.test(name),
);
const unit = readFileSync(join(root, 'systemd/klatch.service'), 'utf8');

/**
 * Runs a tool; missing ones are reported in `output`. `make package-test` installs the tools of the packages; a machine
 * without them builds no packages.
 */
function run(command: string, ...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', cwd: root });
  return { status, output: error === undefined ? stdout + stderr : `${command} is not installed` };
}

const has = (command: string): boolean => spawnSync(command, ['--version']).error === undefined;

describe('the scripts of the service', () => {
  test('are the init script and those that dpkg calls', () => {
    expect(scripts).toEqual(['klatch.init', 'klatch.postinst', 'klatch.postrm', 'klatch.preinst', 'klatch.prerm']);
  });

  test.each(scripts)('%s is POSIX sh', (name) => {
    const file = join('debian', name);
    expect(readFileSync(join(root, file), 'utf8')).toMatch(/^#!\/bin\/sh\n/);
    expect(run('sh', '-n', file)).toEqual({ status: 0, output: '' });
    if (has('busybox')) expect(run('busybox', 'sh', '-n', file)).toEqual({ status: 0, output: '' });
    if (has('shellcheck')) expect(run('shellcheck', file)).toEqual({ status: 0, output: '' });
  });

  test('the init script refuses an action that it does not know with 2, and one without the rights with 4', async () => {
    const text = readFileSync(join(root, 'debian/klatch.init'), 'utf8');
    const folder = await mkdtemp(join(tmpdir(), 'klatch-init-'));
    const script = join(folder, 'klatch');
    // This copy of the init script uses folders of the test. So it needs no installed package and changes nothing on
    // the machine.
    const own = text
      .replace(/^COMMAND=.*$/m, 'COMMAND=/bin/true')
      .replace(/^RUN_DIR=.*$/m, `RUN_DIR=${folder}/run`)
      .replace(/^LOG_DIR=.*$/m, `LOG_DIR=${folder}/log`)
      .replaceAll('/run/systemd/system', `${folder}/no-systemd`)
      .replaceAll('/lib/lsb/init-functions', `${folder}/no-lsb`)
      .replaceAll('/etc/default/klatch', `${folder}/no-default`);
    try {
      await writeFile(script, own);
      expect(run('sh', script, 'dance')).toMatchObject({ status: 2, output: expect.stringMatching(/^Usage: /) });
      expect(run('sh', script).status).toBe(2);
      expect(run('sh', script, 'reload').status).toBe(3);
      expect(run('sh', script, 'status')).toMatchObject({ status: 3, output: 'klatch: it does not run\n' });
      await writeFile(script, own.replaceAll('$(id -u)', '1000'));
      for (const action of ['start', 'stop', 'restart', 'force-reload']) {
        expect(run('sh', script, action).status).toBe(4);
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('the init script takes no other process for the server, whatever the pid file says', async () => {
    const text = readFileSync(join(root, 'debian/klatch.init'), 'utf8');
    const functions = text
      .slice(0, text.indexOf('case "${1-}" in\n  start)'))
      .replace(/^COMMAND=.*$/m, 'COMMAND=/bin/true');
    const folder = await mkdtemp(join(tmpdir(), 'klatch-init-'));
    try {
      const ask = async (change: (script: string) => string): Promise<number | null> => {
        const script = join(folder, 'ask');
        await writeFile(script, `${change(functions)}\nis_server ${process.pid}\n`);
        return run('sh', script).status;
      };
      expect(await ask((script) => script)).toBe(1);
      // If the script takes Node for the program of the server, only the missing mark in the environment distinguishes
      // this process from the server.
      const sameProgram = (script: string): string => script.replace(/^PROGRAM=.*$/m, `PROGRAM=${process.execPath}`);
      expect(await ask(sameProgram)).toBe(1);
      // If every process has the mark, this process counts as the server: so the refusals above had no other reason.
      const marked = (script: string): string =>
        script.replace('grep -qxF "KLATCH_SERVICE=$PID_FILE"', 'grep -q PATH=');
      expect(await ask((script) => marked(sameProgram(script)))).toBe(0);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

test('a failed upgrade is told by the words that the program has for it', () => {
  const words = 'nothing was changed, the database is at schema';
  expect(readFileSync(join(root, 'debian/klatch.postinst'), 'utf8')).toContain(words);
  expect(readFileSync(join(root, 'src/storage/db/migrate.ts'), 'utf8')).toContain(words);
});

describe('the unit', () => {
  test('is restarted on no status that a restart cannot mend', () => {
    const statuses = /^RestartPreventExitStatus=(.*)$/m.exec(unit)![1]!.split(' ').map(Number);
    const { usage, incompatibleSchema, notPermitted, notConfigured } = exitCodes;
    expect(statuses).toEqual([usage, incompatibleSchema, notPermitted, notConfigured]);
  });

  test('is closed as far as it goes: an exposure of 2.0 or better, and known to systemd', () => {
    if (!has('systemd-analyze')) return;
    const { output } = run('systemd-analyze', 'security', '--offline=yes', 'systemd/klatch.service');
    const exposure = /Overall exposure level for klatch\.service: (\d+\.\d+)/.exec(output)?.[1];
    expect(Number(exposure)).toBeLessThanOrEqual(2);
    // The service is not installed here, so exactly these complaints are expected.
    const lines = run('systemd-analyze', 'verify', 'systemd/klatch.service').output.split('\n');
    const unknown = lines.filter(
      (line) => line.startsWith('klatch.service') || line.includes('systemd/klatch.service'),
    );
    const expected = /is not executable: No such file or directory|Command 'man /;
    expect(unknown.filter((line) => !expected.test(line))).toEqual([]);
  });
});
