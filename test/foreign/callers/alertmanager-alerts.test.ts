import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { storedMessages } from '../../http/wire.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/ports.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { ALERTMANAGER, Alertmanager, type FiredAlert } from './alertmanager.ts';
import { describeWith } from './programs.ts';

const configuration = (urls: readonly string[]): string => `
route: { receiver: klatch, group_by: [alertname], group_wait: 0s, group_interval: 1s }
receivers:
  - name: klatch
    webhook_configs: [ ${urls.map((url) => `{ url: '${url}' }`).join(', ')} ]
`;

const alert = (instance: string, endsAt: string): FiredAlert => ({
  labels: { alertname: 'HighCPU', instance },
  startsAt: '2026-01-02T03:04:05Z',
  endsAt,
});
const firing = (instance: string): FiredAlert => alert(instance, new Date(Date.now() + 3_600_000).toISOString());
const resolved = (instance: string): FiredAlert => alert(instance, '2026-01-02T03:14:05Z');

const FIRING = '🔴 HighCPU (1 firing)\ninstance=web-1 · since 03:04 UTC';
const RESOLVED = '🟢 HighCPU resolved\ninstance=web-1 · 03:04 to 03:14 UTC';

const started: Alertmanager[] = [];
async function start(...args: Parameters<typeof Alertmanager.start>): Promise<Alertmanager> {
  const alertmanager = await Alertmanager.start(...args);
  started.push(alertmanager);
  return alertmanager;
}
afterEach(async () => {
  for (const alertmanager of started.splice(0)) await alertmanager.stop();
});

/** Resolves when the Alertmanager has counted this many notifications to webhooks. Expects that none failed. */
async function expectSent(alertmanager: Alertmanager, count: number): Promise<void> {
  await eventually(
    async () => (await alertmanager.notifications('notifications_total')).get('webhook') ?? 0,
    (sent) => sent >= count,
  );
  expect((await alertmanager.notifications('notifications_failed_total')).get('webhook') ?? 0).toBe(0);
}

describeWith(ALERTMANAGER, "Alertmanager's webhook", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start();
  });
  afterAll(() => server.stop());

  const textsOf = async (group: TestGroup, by = server): Promise<string[]> =>
    (await storedMessages(by, group)).map(({ text }) => text);
  const expectTexts = async (group: TestGroup, texts: readonly string[]): Promise<void> => {
    await eventually(
      () => textsOf(group),
      (stored) => stored.length >= texts.length && stored[0] === texts[0],
    );
    expect(await textsOf(group)).toEqual(texts);
  };

  test('tells of an alert and of its end as the address asks: by edits and lines, by edits, by new messages', async () => {
    const groups = [await server.createGroup(), await server.createGroup(), await server.createGroup()] as const;
    const queries = ['', '?updates=edit', '?updates=new'];
    const alertmanager = await start(configuration(groups.map(({ webhook }, n) => webhook + queries[n])));
    await alertmanager.put([firing('web-1')]);
    for (const group of groups) await expectTexts(group, [FIRING]);
    await alertmanager.put([resolved('web-1')]);
    const [both, edit, fresh] = groups;
    await expectTexts(both, [RESOLVED, '🟢 HighCPU resolved']);
    await expectTexts(edit, [RESOLVED]);
    await expectTexts(fresh, [FIRING, RESOLVED]);
    await expectSent(alertmanager, 2 * groups.length);
  });

  describe('of a server that is away', () => {
    let database: TestDatabase;
    beforeAll(async () => {
      database = await createTestDatabase();
    });
    afterAll(() => database.drop());

    test('is repeated until it is back, and the alert is one message', async () => {
      const changes = { http: { port: await freePort() } };
      let target = await TestServer.start(changes, { database });
      const group = await target.createGroup();
      await target.stop();
      const alertmanager = await start(configuration([group.webhook]));
      await alertmanager.put([firing('web-1')]);
      await eventually(
        async () => (await alertmanager.notifications('notification_requests_failed_total')).get('webhook') ?? 0,
        (failed) => failed > 0,
      );
      target = await TestServer.start(changes, { database });
      try {
        await eventually(
          () => textsOf(group, target),
          (texts) => texts.length > 0,
        );
        await expectSent(alertmanager, 1);
        expect(await textsOf(group, target)).toEqual([FIRING]);
      } finally {
        await target.stop();
      }
    });
  });

  test('of two Alertmanagers in a cluster makes one message of an alert, also where they know of each other too late', async () => {
    const [joined, apart] = [await server.createGroup(), await server.createGroup()];
    const cluster = [await start(configuration([joined.webhook]), { peers: [] })];
    cluster.push(await start(configuration([joined.webhook]), { peers: cluster }));
    for (const each of cluster)
      await eventually(
        () => each.members(),
        (members) => members === cluster.length,
      );
    const strangers = [await start(configuration([apart.webhook])), await start(configuration([apart.webhook]))];
    const everyone = [...cluster, ...strangers];
    await Promise.all(everyone.map((each) => each.put([firing('web-1')])));
    for (const group of [joined, apart]) await expectTexts(group, [FIRING]);
    await Promise.all(everyone.map((each) => each.put([resolved('web-1')])));
    for (const group of [joined, apart]) await expectTexts(group, [RESOLVED, '🟢 HighCPU resolved']);
    for (const each of strangers) await expectSent(each, 2);
    for (const group of [joined, apart]) expect(await textsOf(group)).toEqual([RESOLVED, '🟢 HighCPU resolved']);
  });
});
