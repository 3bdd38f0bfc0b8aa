import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { storedMessages } from '../../http/wire.ts';
import { eventually } from '../../support/eventually.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { documentedConfiguration } from './documented-configuration.ts';
import { programEnv } from './program-env.ts';
import { describeWith } from './programs.ts';

const NAGIOS = '/usr/sbin/nagios4';
const ICINGA = '/usr/sbin/icinga2';
const CRITICAL = 'DISK CRITICAL - free space: / 812 MiB (4%)';
const OK = 'DISK OK - free space: / 9120 MiB (46%)';

let server: TestServer;
let group: TestGroup;
let folder: string;
let monitor: ChildProcess | null = null;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.stop());
beforeEach(async () => {
  group = await server.createGroup();
  folder = await mkdtemp(join(tmpdir(), 'klatch-nagios-'));
});
afterEach(async () => {
  if (monitor !== null && monitor.exitCode === null) {
    const ended = once(monitor, 'exit');
    monitor.kill();
    await ended;
  }
  await rm(folder, { recursive: true, force: true });
});

const textsAfter = async (count: number): Promise<string[]> =>
  (
    await eventually(
      () => storedMessages(server, group),
      ({ length }) => length >= count,
    )
  ).map(({ text }) => text);

const spawnMonitor = (command: string, args: readonly string[]): ChildProcess =>
  spawn(command, args, { stdio: 'ignore', env: programEnv() });

/** Sets the state of the watched service: the exit status and the output of its check. */
async function setState(status: number, output: string): Promise<void> {
  await writeFile(join(folder, 'check'), `#!/bin/sh\necho '${output}'\nexit ${status}\n`, { mode: 0o755 });
}

/** Watches a service that fails and then recovers. Expects one message for each of the two. */
async function expectProblemAndRecovery(start: () => ChildProcess): Promise<void> {
  await setState(2, CRITICAL);
  monitor = start();
  const problem = `🔴 PROBLEM: disk on db1\n${CRITICAL}`;
  expect(await textsAfter(1)).toEqual([problem]);
  await setState(0, OK);
  expect(await textsAfter(2)).toEqual([problem, `🟢 RECOVERY: disk on db1\n${OK}`]);
}

const defined = (kind: string, fields: Readonly<Record<string, string | number>>): string =>
  `define ${kind} {\n${Object.entries(fields)
    .map(([name, value]) => ` ${name} ${value}`)
    .join('\n')}\n}\n`;

const nagiosObjects = (): string =>
  [
    documentedConfiguration('Nagios', group),
    defined('command', { command_name: 'check', command_line: join(folder, 'check') }),
    defined('command', { command_name: 'nothing', command_line: '/bin/true' }),
    defined('contact', {
      contact_name: 'klatch',
      host_notifications_enabled: 0,
      host_notification_commands: 'nothing',
      service_notification_options: 'c,r',
      service_notification_commands: 'notify-service-by-klatch',
    }),
    defined('host', { host_name: 'db1', address: '127.0.0.1', max_check_attempts: 1, contacts: 'klatch' }),
    defined('service', {
      host_name: 'db1',
      service_description: 'disk',
      check_command: 'check',
      max_check_attempts: 1,
      check_interval: 1,
      retry_interval: 1,
      notification_interval: 0,
      contacts: 'klatch',
    }),
  ].join('\n');

const nagiosSettings = (): string => {
  const files = {
    cfg_file: 'objects.cfg',
    log_file: 'log',
    object_cache_file: 'objects.cache',
    status_file: 'status',
    state_retention_file: 'retention',
    temp_file: 'temporary',
    temp_path: '.',
    check_result_path: 'results',
    lock_file: 'lock',
    query_socket: 'query',
    command_file: 'command',
  };
  const settings = {
    ...Object.fromEntries(Object.entries(files).map(([name, file]) => [name, join(folder, file)])),
    nagios_user: 'root',
    nagios_group: 'root',
    interval_length: '1',
    check_external_commands: '0',
    use_syslog: '0',
    service_inter_check_delay_method: 'n',
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
};

describeWith(NAGIOS, 'Nagios 4', () => {
  test('posts by the documented command once that a service fails, and once that it recovers', async () => {
    await mkdir(join(folder, 'results'));
    await writeFile(join(folder, 'objects.cfg'), nagiosObjects());
    await writeFile(join(folder, 'nagios.cfg'), nagiosSettings());
    await expectProblemAndRecovery(() => spawnMonitor(NAGIOS, [join(folder, 'nagios.cfg')]));
  });
});

const icingaObjects = (): string => `
include <itl>
${documentedConfiguration('Icinga 2', group)}
object CheckerComponent "checker" { }
object NotificationComponent "notification" { }
object CheckCommand "check" { command = [ "${join(folder, 'check')}" ] }
object CheckCommand "nothing" { command = [ "/bin/true" ] }
object User "ada" { }
object Host "db1" { check_command = "nothing" }
object Service "disk" {
  host_name = "db1"
  check_command = "check"
  check_interval = 1s
  retry_interval = 1s
  max_check_attempts = 1
}
object Notification "klatch" {
  host_name = "db1"
  service_name = "disk"
  command = "klatch-service-notification"
  users = [ "ada" ]
  interval = 0
}
`;

describeWith(ICINGA, 'Icinga 2', () => {
  test('posts by the documented command once that a service fails, and once that it recovers', async () => {
    const config = join(folder, 'icinga2.conf');
    await writeFile(config, icingaObjects());
    const folders = ['DataDir', 'LogDir', 'CacheDir', 'SpoolDir', 'InitRunDir'];
    for (const name of folders) await mkdir(join(folder, name));
    const settings = [
      ...folders.map((name) => `${name}=${join(folder, name)}`),
      `PidPath=${join(folder, 'pid')}`,
      'RunAsUser=root',
      'RunAsGroup=root',
    ];
    const defines = settings.map((setting) => `-DConfiguration.${setting}`);
    await expectProblemAndRecovery(() => spawnMonitor(ICINGA, ['daemon', '-c', config, ...defines]));
  });
});
