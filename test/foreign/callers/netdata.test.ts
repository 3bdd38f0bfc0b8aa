import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { describeWith, messagesOf, runProgram, type ProgramOutcome } from './programs.ts';

const ALARM_NOTIFY = '/usr/lib/netdata/plugins.d/alarm-notify.sh';
const METHODS = ['SLACK', 'DISCORD', 'ROCKETCHAT', 'MSTEAMS', 'HANGOUTS', 'FLOCK', 'EMAIL', 'CUSTOM'];

/** The values in which the texts of the script's three test alarms differ from each other. */
const ALARMS = [
  { state: 'WARNING', says: 'needs attention', value: 'test alarm = new value', mood: '🟠', icon: '⚠️' },
  { state: 'CRITICAL', says: 'is critical', value: 'test alarm = new value', mood: '🔴', icon: '🔥' },
  { state: 'CLEAR', says: 'recovered', value: 'test alarm (alarm was raised for 3 seconds)', mood: '🟢', icon: '💚' },
] as const;

function textOf({ state, says, value, mood, icon }: (typeof ALARMS)[number], method: string): string {
  const host = hostname();
  const chart = method === 'MSTEAMS' ? 'test.chart' : '`test.chart`';
  const first = `${host} ${says}, ${chart} (_test.family_), *${value}*`;
  if (method === 'MSTEAMS') return `${icon} Alert ${state} from netdata for ${host}\n${first}\nNetdata: ADDRESS`;
  const ends: Readonly<Record<string, string>> = {
    SLACK: `test.chart · test.family\nby ${host}`,
    DISCORD: `test.chart: test.family\n${host}`,
    ROCKETCHAT: 'test.chart: chart · test.family: family',
  };
  const info = 'this is a test alarm to verify notifications work';
  return `${first}\n${mood} ${value}\nADDRESS\n${info}\n${ends[method]}`;
}

describeWith(ALARM_NOTIFY, "netdata's alarm-notify.sh posts its three tests", () => {
  let server: TestServer;
  let group: TestGroup;
  let folder: string;
  beforeAll(async () => {
    server = await TestServer.start();
    group = await server.createGroup();
    folder = await mkdtemp(join(tmpdir(), 'klatch-netdata-'));
  });
  afterAll(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test.each([
    ['SLACK', '/hooks/T'],
    ['SLACK', '/v1/webhooks/T'],
    ['DISCORD', '/api/webhooks/1/T'],
    ['DISCORD', '/v1/webhooks/T'],
    ['ROCKETCHAT', '/hooks/1/T'],
    ['ROCKETCHAT', '/v1/webhooks/T'],
    ['MSTEAMS', '/v1/webhooks/T/teams'],
    ['MSTEAMS', '/v1/webhooks/T'],
  ])('by %s on %s', async (method, path) => {
    const off = METHODS.map((name) => `SEND_${name}="${name === method ? 'YES' : 'NO'}"`);
    const lines = [
      ...off,
      `${method}_WEBHOOK_URL="${server.url}${path.replace('T', group.token)}"`,
      `DEFAULT_RECIPIENT_${method}="alarms"`,
    ];
    await writeFile(join(folder, 'health_alarm_notify.conf'), `${lines.join('\n')}\n`);
    let outcome: ProgramOutcome | null = null;
    const posted = await messagesOf(server, group, async () => {
      outcome = await runProgram('/bin/bash', [ALARM_NOTIFY, 'test'], {
        env: { NETDATA_USER_CONFIG_DIR: folder },
      });
    });
    const addressless = posted.map(({ text }) => text.replace(/https:\S+/, 'ADDRESS'));
    expect(addressless).toEqual(ALARMS.map((alarm) => textOf(alarm, method)));
    expect(outcome!.status).toBe(0);
    // The program exits with 0 even if a method fails, so the test looks at the line that it prints for each alarm.
    expect(outcome!.output.match(/^# OK$/gm)).toHaveLength(ALARMS.length);
  });
});
