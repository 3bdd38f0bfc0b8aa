import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { storedMessages } from '../../http/wire.ts';
import { eventually } from '../../support/eventually.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { ALERTMANAGER, Alertmanager } from './alertmanager.ts';
import { describeWith, runProgram } from './programs.ts';

const INTEGRATIONS = ['slack', 'webhook', 'discord', 'telegram'] as const;
type Integration = (typeof INTEGRATIONS)[number];

/** The text that Alertmanager's own templates make of the one alert of this test. */
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

/** The configuration of an Alertmanager with a receiver of each kind, each of which posts to a group of its own. */
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
  let alertmanager: Alertmanager;
  beforeAll(async () => {
    server = await TestServer.start();
    const made = await Promise.all(INTEGRATIONS.map(async (name) => [name, await server.createGroup()] as const));
    groups = Object.fromEntries(made) as Record<Integration, TestGroup>;
    alertmanager = await Alertmanager.start(configuration(server.url, groups));
  });
  afterAll(async () => {
    await alertmanager.stop();
    await server.stop();
  });

  /** Sends the one alert of this test to the Alertmanager. */
  async function tell(args: readonly string[]): Promise<void> {
    const alert = ['HighCPU', 'instance=web-1', 'severity=critical', '--annotation=summary=CPU <97 %>'];
    const target = `--alertmanager.url=http://${alertmanager.address}`;
    expect(await runProgram('/usr/bin/amtool', ['alert', 'add', ...alert, ...args, target])).toMatchObject({
      status: 0,
    });
  }

  const textsOf = async (name: Integration): Promise<string[]> =>
    (await storedMessages(server, groups[name])).map(({ text }) => text);

  /** The Alertmanager's own count of its notifications, by kind of receiver. */
  async function notifications(metric: 'notifications_total' | 'notifications_failed_total') {
    const counts = await alertmanager.notifications(metric);
    return Object.fromEntries([...counts].filter(([name]) => INTEGRATIONS.includes(name as Integration)));
  }

  /** Waits until the Alertmanager has counted `count` notifications of each kind. Expects that none failed. */
  async function expectSent(count: number): Promise<void> {
    const all = Object.fromEntries(INTEGRATIONS.map((name) => [name, count]));
    const none = Object.fromEntries(INTEGRATIONS.map((name) => [name, 0]));
    await eventually(
      () => notifications('notifications_total'),
      (sent) => INTEGRATIONS.every((name) => (sent[name] ?? 0) >= count),
    );
    // The Alertmanager counts a notification before its request, and a failure after it. So the test also waits for the
    // messages.
    for (const name of INTEGRATIONS)
      await eventually(
        () => textsOf(name),
        (texts) => texts.length >= count,
      );
    expect(await notifications('notifications_total')).toEqual(all);
    // A kind that never failed may have no counter.
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
