import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { storedMessages } from '../../http/wire.ts';
import { eventually } from '../../support/eventually.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { documentedConfiguration } from './documented-configuration.ts';
import { programEnv } from './program-env.ts';
import { describeWith, expectOneMessage, runProgram } from './programs.ts';

const MONIT = '/usr/bin/monit';
const SMARTD_WARNING = '/usr/share/smartmontools/smartd_warning.sh';

let server: TestServer;
let group: TestGroup;
let folder: string;
beforeAll(async () => {
  server = await TestServer.start();
  folder = await mkdtemp(join(tmpdir(), 'klatch-scripts-'));
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Writes the script that docs/callers.md has for a program, with the webhook URL of a new group. */
async function writeScript(program: string): Promise<string> {
  group = await server.createGroup();
  const path = join(folder, `klatch-${program.toLowerCase()}`);
  await writeFile(path, documentedConfiguration(program, group), { mode: 0o700 });
  return path;
}

describeWith(MONIT, 'Monit', () => {
  test('posts once that something is wrong, and once that it is right again', async () => {
    const script = await writeScript('Monit');
    const [config, watched] = [join(folder, 'monitrc'), join(folder, 'watched')];
    const condition = `if does not exist then exec "${script}" else if succeeded then exec "${script}"`;
    const lines = [
      'set daemon 1',
      ...['pidfile', 'statefile', 'idfile'].map((name) => `set ${name} ${join(folder, `monit.${name}`)}`),
      `check file watched with path ${watched} ${condition}`,
    ];
    await writeFile(config, `${lines.join('\n')}\n`, { mode: 0o600 });
    const monit = spawn(MONIT, ['-I', '-c', config], { stdio: 'ignore', env: programEnv() });
    const heads = async (): Promise<(string | undefined)[]> =>
      (await storedMessages(server, group)).map(({ text }) => text.split('\n')[0]);
    try {
      await eventually(heads, ({ length }) => length > 0);
      await writeFile(watched, '');
      await eventually(heads, ({ length }) => length > 1);
    } finally {
      const ended = once(monit, 'exit');
      monit.kill();
      await ended;
    }
    expect(await heads()).toEqual([
      expect.stringMatching(/^🟠 watched on \S+: Does not exist$/),
      expect.stringMatching(/^🟠 watched on \S+: Exists$/),
    ]);
  });
});

describeWith(SMARTD_WARNING, "smartd's warning script", () => {
  test('posts the warning in place of a mail', async () => {
    const script = await writeScript('smartd');
    const message = 'Device: /dev/sda [SAT], 8 Currently unreadable (pending) sectors';
    const env = {
      SMARTD_MAILER: script,
      SMARTD_ADDRESS: 'root',
      SMARTD_MESSAGE: message,
      SMARTD_FAILTYPE: 'CurrentPendingSector',
      SMARTD_TFIRST: 'Thu Jan  1 00:00:00 2026 UTC',
      SMARTD_TFIRSTEPOCH: '1767225600',
      SMARTD_PREVCNT: '0',
      SMARTD_NEXTDAYS: '1',
      SMARTD_DEVICE: '/dev/sda',
      SMARTD_DEVICETYPE: 'sat',
      SMARTD_DEVICESTRING: '/dev/sda [SAT]',
      SMARTD_DEVICEINFO: '/dev/sda [SAT], DISK, S/N:1',
    };
    const text = expect.stringMatching(
      /^🔴 SMART error \(CurrentPendingSector\) detected on host: \S+\nDevice: \/dev\/sda \[SAT\], 8 Currently unreadable \(pending\) sectors$/,
    ) as unknown as string;
    await expectOneMessage(server, group, { text }, () => runProgram('/bin/sh', [SMARTD_WARNING], { env }));
  });
});
