import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { storedMessages } from '../../http/wire.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/ports.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { describeWith, programEnv, runProgram } from './programs.ts';

const ALERTMANAGER = '/usr/bin/prometheus-alertmanager';
const INTEGRATIONS = ['slack', 'webhook', 'discord', 'telegram'] as const;
type Integration = (typeof INTEGRATIONS)[number];

/** As its own templates make it of the one alert of this test. */
const DEFAULT_TEXT = [
  'Alerts Firing:',
  'Labels:',
  ' - alertname = HighCPU',
  ' - instance = web-1',
  ' - severity = critical',
  'Annotations:',
  ' - summary = CPU <97 %>',
  'Source:',
].join('\n');

/** One instance with a group for each kind of receiver. */
function configuration(url: string, groups: Readonly<Record<Integration, TestGroup>>): string {
  return `
route:
  receiver: slack
  group_wait: 0s
  group_interval: 1s
  routes:
${INTEGRATIONS.map((name) => `    - { receiver: ${name}, continue: true }`).join('\n')}
receivers:
  - name: slack
    slack_configs:
      - { api_url: '${groups.slack.webhook}', channel: '#alerts', send_resolved: true }
  - name: webhook
    webhook_configs:
      - { url: '${groups.webhook.webhook}' }
  - name: discord
    discord_configs:
      - { webhook_url: '${url}/api/webhooks/1/${groups.discord.token}' }
  - name: telegram
    telegram_configs:
      - { api_url: '${url}', bot_token: '100:${groups.telegram.token}', chat_id: -7 }
`;
}

describeWith(ALERTMANAGER, 'Alertmanager 0.25', () => {
  let server: TestServer;
  let groups: Record<Integration, TestGroup>;
  let folder: string;
  let address: string;
  let child: ChildProcess;
  beforeAll(async () => {
    server = await TestServer.start();
    const made = await Promise.all(INTEGRATIONS.map(async (name) => [name, await server.createGroup()] as const));
    groups = Object.fromEntries(made) as Record<Integration, TestGroup>;
    folder = await mkdtemp(join(tmpdir(), 'klatch-alertmanager-'));
    const config = join(folder, 'alertmanager.yml');
    await writeFile(config, configuration(server.url, groups));
    address = `127.0.0.1:${await freePort()}`;
    const options = [
      `--config.file=${config}`,
      `--storage.path=${folder}`,
      `--web.listen-address=${address}`,
      '--web.external-url=http://alerts.example.org',
      '--cluster.listen-address=',
    ];
    child = spawn(ALERTMANAGER, options, { stdio: 'ignore', env: programEnv() });
    const isReady = (): Promise<boolean> =>
      fetch(`http://${address}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await eventually(isReady, (ready) => ready);
  });
  afterAll(async () => {
    const ended = once(child, 'exit');
    child.kill();
    await ended;
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Tells the instance of the one alert of this test. */
  async function tell(args: readonly string[]): Promise<void> {
    const alert = ['HighCPU', 'instance=web-1', 'severity=critical', '--annotation=summary=CPU <97 %>'];
    const target = `--alertmanager.url=http://${address}`;
    expect(await runProgram('/usr/bin/amtool', ['alert', 'add', ...alert, ...args, target])).toMatchObject({
      status: 0,
    });
  }

  const textsOf = async (name: Integration): Promise<string[]> =>
    (await storedMessages(server, groups[name])).map(({ text }) => text);

  /** The instance's own count of what it sent, by kind. */
  async function notifications(metric: string): Promise<Record<string, number>> {
    const lines = (await (await fetch(`http://${address}/metrics`)).text()).split('\n');
    const pattern = new RegExp(`^alertmanager_${metric}\\{integration="(\\w+)"\\} (\\d+)$`);
    const counts = lines.flatMap((line) => {
      const [, name = '', count] = pattern.exec(line) ?? [];
      return INTEGRATIONS.includes(name as Integration) ? [[name, Number(count)] as const] : [];
    });
    return Object.fromEntries(counts);
  }

  /** Waits until each receiver has got `count` notifications by the instance's own metric. */
  async function expectSent(count: number): Promise<void> {
    const all = Object.fromEntries(INTEGRATIONS.map((name) => [name, count]));
    const none = Object.fromEntries(INTEGRATIONS.map((name) => [name, 0]));
    await eventually(
      () => notifications('notifications_total'),
      (sent) => INTEGRATIONS.every((name) => (sent[name] ?? 0) >= count),
    );
    // Each is counted before the request is made, and its failure after it.
    for (const name of INTEGRATIONS)
      await eventually(
        () => textsOf(name),
        (texts) => texts.length >= count,
      );
    expect(await notifications('notifications_total')).toEqual(all);
    // Of a kind that never failed there may be no count.
    expect({ ...none, ...(await notifications('notifications_failed_total')) }).toEqual(none);
  }

  test('posts what fires once by each kind of receiver', async () => {
    await tell(['--start=2026-01-02T03:04:05Z']);
    await expectSent(1);
    const firing = Object.fromEntries(
      await Promise.all(INTEGRATIONS.map(async (name) => [name, await textsOf(name)] as const)),
    );
    expect(firing).toEqual({
      slack: ['🔴 [FIRING:1]  (HighCPU web-1 critical)\nhttp://alerts.example.org/#/alerts?receiver=slack'],
      webhook: ['🔴 HighCPU (1 firing)\nCPU <97 %> · instance=web-1 · critical · since 03:04 UTC'],
      discord: [`[FIRING:1]  (HighCPU web-1 critical)\n${DEFAULT_TEXT}`],
      telegram: [DEFAULT_TEXT],
    });
  });
});
