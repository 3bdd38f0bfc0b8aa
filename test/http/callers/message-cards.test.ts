import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { MAX_CARDS_BYTES } from '../../../src/callers/core/message-cards.ts';
import type { SerializedMessage } from '../../../src/operations/core/serializers.ts';
import { LiveClient } from '../../live/client.ts';
import { joined } from '../../operations/conversation-calls.ts';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestPerson } from '../../support/people.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../../support/server.ts';

let server: TestServer;
let group: TestGroup;
let alice: TestPerson;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup();
  alice = await joined(server, 'alice', group.id, 'owner');
});
afterAll(() => server.stop());
beforeEach(async () => {
  group = await server.createGroup();
  await server.operate('groups.add-member', { group: group.id, user: 'alice', role: 'owner' });
});

async function post(body: unknown, headers: Record<string, string> = {}): Promise<void> {
  const answer = await fetch(group.webhook, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  expect(answer.status).toBe(200);
}

async function messages(): Promise<SerializedMessage[]> {
  const { messages: all } = await callAs<{ messages: SerializedMessage[] }>(server, alice, 'messages.history', {
    conversation: group.id,
  });
  return all;
}
const newest = async (): Promise<SerializedMessage> => (await messages()).at(-1)!;

/** The stored cards of each message. */
const stored = async (): Promise<unknown[]> => {
  const rows = await server.database.query(
    (sql) => sql`select cards from message where conversation_id = ${group.id} order by seq`,
  );
  return rows.map(({ cards }) => cards as unknown);
};

const SLACK = {
  text: 'Look at this',
  attachments: [
    {
      color: 'danger',
      title: 'Build failed',
      title_link: 'https://ci.example/7',
      fields: [{ title: 'Branch', value: 'main', short: true }],
      ts: 1_763_805_600,
    },
  ],
};
const SLACK_CARDS = [
  { text: 'Look at this' },
  {
    title: 'Build failed',
    url: 'https://ci.example/7',
    mood: 'danger',
    fields: [{ name: 'Branch', value: 'main', short: true }],
    time: '2025-11-22T10:00:00.000Z',
  },
];

describe('a post of ours', () => {
  test('has title, url and level in a card, and its text stays as it came', async () => {
    const text = '  disk full \u202E on @web-1\r\n';
    await post({ text, title: 'Disk', url: 'https://example.org/disk', level: 'error' });
    const shown = await newest();
    expect(shown.text).toBe(text);
    expect(shown.cards).toEqual([
      { title: 'Disk', url: 'https://example.org/disk', mood: 'danger', text: 'disk full  on @web-1' },
    ]);
  });

  test.each([
    { text: 'plain' },
    { text: 'labelled', username: 'cron' },
    { text: 'with unknown fields', colour: 'red', count: 3 },
    { text: 'with fields of other types', title: { a: 1 }, url: ['https://example.org'], level: 'loud' },
    { text: 'with an address that nobody may open', url: 'javascript:alert(1)' },
  ])('has no cards where it has none of them: %j', async (body) => {
    await post(body);
    const shown = await newest();
    expect(shown).toMatchObject({ text: body.text });
    expect(shown).not.toHaveProperty('cards');
    expect(await stored()).toEqual([null]);
  });
});

describe('cards', () => {
  test('are in history, changes, searches and live frames, in the order of their documents', async () => {
    const client = await LiveClient.signIn(server.liveUrl, alice.token);
    try {
      await client.call('live.subscribe');
      await post(SLACK);
      const [shown] = await messages();
      expect(shown!.cards).toEqual(SLACK_CARDS);
      expect(Object.keys(shown!.cards![1]!)).toEqual(Object.keys(SLACK_CARDS[1]!));
      expect(Object.keys(shown!).at(-1)).toBe('cards');
      const page = await callAs(server, alice, 'conversations.sync', { conversation: group.id, after_rev: 0 });
      expect(page.changes.at(-1)).toEqual({ rev: shown!.rev, message: shown });
      await eventually(
        () => client.changes(group.id).filter(({ message }) => message !== undefined),
        (changes) => changes.length > 0 && JSON.stringify(changes[0]!.message) === JSON.stringify(shown),
      );
      const found = (): Promise<{ messages: SerializedMessage[] }> =>
        callAs(server, alice, 'messages.search', { text: '"Build failed"', conversation: group.id });
      const { messages: hits } = await eventually(found, (answer) => answer.messages.length === 1);
      expect(hits[0]!.cards).toEqual(SLACK_CARDS);
    } finally {
      client.socket.destroy();
    }
  });

  test('are written beside posts with keys, and a repeat posts and changes nothing', async () => {
    await post(SLACK, { 'idempotency-key': 'once' });
    await post(SLACK, { 'idempotency-key': 'once' });
    expect((await messages()).map(({ cards }) => cards)).toEqual([SLACK_CARDS]);
  });

  test('are none of messages that a node of the version before wrote', async () => {
    await postJson(group.webhook, { text: 'new' });
    await server.database.query(
      (sql) => sql`
        with head as (
          update conversation_head set last_seq = last_seq + 1, last_rev = last_rev + 1
          where conversation_id = ${group.id} returning *
        )
        insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
        select h.conversation_id, h.last_seq, h.last_rev, m.sender_id, 'old', now()
        from head h join message m on m.conversation_id = h.conversation_id and m.seq = 1`,
    );
    expect((await messages()).map((each) => [each.text, 'cards' in each])).toEqual([
      ['new', false],
      ['old', false],
    ]);
  });

  test('go when a person edits or deletes their message, also from the database', async () => {
    await post(SLACK);
    await post({ ...SLACK, text: 'Once more' });
    const [edited, deleted] = [1, 2].map((seq) => ({ conversation: group.id, seq }));
    const answer = await callAs(server, alice, 'messages.edit', { ...edited, text: 'put right' });
    expect(answer).not.toHaveProperty('cards');
    expect(await callAs(server, alice, 'messages.delete', deleted)).not.toHaveProperty('cards');
    expect(await stored()).toEqual([null, null]);
    expect((await messages()).map((each) => [each.text, 'cards' in each])).toEqual([
      ['put right', false],
      ['', false],
    ]);
  });

  test('that are huge are cut, and the text has all of it', async () => {
    const fields = Array.from({ length: 12 }, (_, i) => ({ title: `${i}`, value: '€'.repeat(3_000), short: false }));
    await post({ attachments: [{ title: 'Large', fields }] });
    const { text, cards } = await newest();
    expect(text).toContain('\n11: €');
    expect(Buffer.byteLength(JSON.stringify(cards))).toBeLessThanOrEqual(MAX_CARDS_BYTES);
    expect(cards![0]!.fields!.length).toBeLessThan(12);
  });

  test('end a page of the history and of changes as long texts do', async () => {
    const fields = Array.from({ length: 12 }, (_, i) => ({ title: `${i}`, value: 'x'.repeat(3_999), short: false }));
    for (let i = 0; i < 20; i += 1) await post({ text: 'short', attachments: [{ title: `${i}`, fields }] });
    const page = await callAs(server, alice, 'messages.history', { conversation: group.id, after: 0, limit: 200 });
    expect(page.messages.length).toBeLessThan(10);
    expect(page.next).toBe(page.messages.length);
    const changes = await callAs(server, alice, 'conversations.sync', {
      conversation: group.id,
      after_rev: 0,
      limit: 500,
    });
    expect(changes.changes.length).toBeLessThan(20);
    expect(changes.more).toBe(true);
  });

  test('are part of what a reverse webhook gets, and without them its body is as ever', async () => {
    const receiver = await Receiver.start();
    try {
      await postJson(`${group.webhook}/reverse`, { url: receiver.url() });
      await post({ text: 'plain' });
      await post(SLACK);
      const [plain, carded] = await receiver.received(2);
      expect(Object.keys(plain!.body.data.message)).toEqual(['id', 'seq', 'rev', 'text', 'sent_at', 'attachments']);
      expect(carded!.body.data.message.cards).toEqual(SLACK_CARDS);
    } finally {
      await receiver.stop();
    }
  });
});

describe('the cards of an alert', () => {
  const own = (state: string, more: object = {}): object => ({
    text: `disk ${state}`,
    key: 'disk',
    state,
    title: 'Disk web-1',
    level: 'warning',
    ...more,
  });
  const alertmanager = (...ends: (string | null)[]): object => ({
    version: '4',
    receiver: 'klatch',
    status: ends.includes(null) ? 'firing' : 'resolved',
    groupKey: '{}:{alertname="HighCPU"}',
    groupLabels: { alertname: 'HighCPU' },
    alerts: ends.map((end, i) => ({
      status: end === null ? 'firing' : 'resolved',
      labels: { alertname: 'HighCPU', instance: `web-${i}` },
      annotations: {},
      startsAt: `2026-11-22T10:0${i}:00Z`,
      endsAt: end === null ? '0001-01-01T00:00:00Z' : `2026-11-22T${end}:00Z`,
      fingerprint: `f-${i}`,
    })),
  });
  const shown = async (): Promise<(string | undefined)[][]> =>
    (await messages()).map(({ text, cards }) => [
      text.split('\n')[0]!,
      ...(cards ?? []).map(({ title, mood }) => `${title}: ${mood}`),
    ]);

  test('change with its text, in the same change, and a line that ends it has none', async () => {
    await post(alertmanager(null));
    await post(alertmanager(null, null));
    expect(await shown()).toEqual([
      ['🔴 HighCPU (2 firing)', 'HighCPU (2 firing): danger'],
      ['🔴 HighCPU (2 firing)', 'HighCPU (2 firing): danger'],
    ]);
    const before = (await newest()).rev;
    await post(alertmanager('10:20', '10:21'));
    expect(await shown()).toEqual([
      ['🟢 HighCPU resolved (2 alerts)', 'HighCPU resolved (2 alerts): good'],
      ['🔴 HighCPU (2 firing)', 'HighCPU (2 firing): danger'],
      ['🟢 HighCPU resolved (2 alerts)'],
    ]);
    expect((await messages()).map(({ rev }) => rev)).toEqual([before + 1, before, before + 2]);
  });

  test('of ours keep what they told, and become good with its end', async () => {
    await post(own('firing', { url: 'https://example.org/disk' }));
    await post(own('resolved', { title: 'Room again', level: 'ok' }));
    const [first, end] = await messages();
    expect(first).toMatchObject({
      text: '🟢 resolved · disk firing',
      cards: [{ title: 'Disk web-1', url: 'https://example.org/disk', mood: 'good', text: 'disk firing' }],
    });
    expect(end!.cards).toEqual([{ title: 'Room again', mood: 'good', text: 'disk resolved' }]);
  });

  test('stay as they are where the text does', async () => {
    await post(own('firing'));
    const before = await newest();
    await post(own('firing', { level: 'error' }));
    expect(await messages()).toEqual([before]);
  });

  test('are in the event that tells of its edit, as they are by then', async () => {
    const receiver = await Receiver.start();
    try {
      await postJson(`${group.webhook}/reverse`, { url: receiver.url(), events: ['message.updated'] });
      await post(own('firing'));
      await receiver.received(1);
      await post(own('resolved'));
      const [, updated] = await receiver.received(3);
      expect(updated!.body).toMatchObject({
        type: 'message.updated',
        data: { message: { seq: 1, cards: [{ title: 'Disk web-1', mood: 'good', text: 'disk firing' }] } },
      });
      await callAs(server, alice, 'messages.edit', { conversation: group.id, seq: 1, text: 'by hand' });
      const arrivals = await receiver.received(4);
      expect(arrivals.at(-1)!.body.data.message).toMatchObject({ text: 'by hand' });
      expect(arrivals.at(-1)!.body.data.message).not.toHaveProperty('cards');
    } finally {
      await receiver.stop();
    }
  });
});
