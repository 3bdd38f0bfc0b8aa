import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { Receiver, type Answerer, type Arrival } from '../../support/receiver.ts';
import { postJson, readJson, TestServer, type TestGroup } from '../../support/server.ts';

let server: TestServer;
const receivers: Receiver[] = [];
beforeAll(async () => {
  server = await TestServer.start({
    delivery: { retryDelaysMs: [30, 60], responseBodyReadMs: 50, responseHeadersTimeoutMs: 3_000 },
    limits: { hookRegistrationsPerGroupPerMinute: 1_000, hookChangesPerGroupPerMinute: 1_000 },
  });
});
afterAll(() => server.stop());
afterEach(async () => {
  for (const receiver of receivers.splice(0)) await receiver.stop();
});

interface Bot {
  readonly receiver: Receiver;
  readonly id: number;
  readonly url: string;
  readonly token: string;
}

async function bot(group: TestGroup, answer: Answerer, options: object = {}): Promise<Bot> {
  const receiver = await Receiver.start(answer);
  receivers.push(receiver);
  const format = { format: 'mattermost', skip: ['bot'], ...options };
  const { status, body } = await postJson(`${group.webhook}/reverse`, { url: receiver.url(), ...format });
  expect(status).toBe(201);
  return { receiver, id: body.id, url: `${group.webhook}/reverse/${body.id}`, token: body.token };
}

/** Replies only to texts that begin with `!`. Here the group's own webhook posts the commands, not a person. */
const toCommands =
  (reply: (arrival: Arrival, res: ServerResponse) => void): Answerer =>
  (arrival, res) => {
    if (!String(arrival.body.text).startsWith('!')) return 200;
    reply(arrival, res);
    return undefined;
  };

const json = (value: unknown) => toCommands((_arrival, res) => void res.end(JSON.stringify(value)));

interface Row {
  readonly seq: number;
  readonly text: string;
  readonly label: string | null;
  readonly icon_url: string | null;
  readonly hops: number;
}

const messagesOf = (group: TestGroup): Promise<readonly Row[]> =>
  server.database.query(
    (sql) => sql<Row[]>`
      select seq::int as seq, text, label, icon_url, hops from message where conversation_id = ${group.id} order by seq`,
  );

const textsOf = async (group: TestGroup): Promise<string[]> => (await messagesOf(group)).map(({ text }) => text);

// oxlint-disable-next-line typescript/no-explicit-any -- tests compare it whole
const logOf = async (url: string): Promise<any[]> => (await readJson(await fetch(`${url}/deliveries`))).body;

/** The rows of the delivery log, oldest first. Waits until there are `count` of them. */
const logged = async (url: string, count: number) =>
  (
    await eventually(
      () => logOf(url),
      (rows) => rows.length >= count,
    )
  ).toReversed();

describe('a reply in the answer to a delivery', () => {
  test('is posted as the webhook of the group, under the name that it gives itself', async () => {
    const group = await server.createGroup();
    // The group demands signed posts, but a reply has no signature and needs none.
    await server.operate('groups.set-incoming-secret', { group: group.id });
    const reply = { text: 'pong', username: 'Ping bot', icon_url: 'https://bot.example/icon.png' };
    const { receiver, token } = await bot(group, json(reply));
    await postJson(group.webhook, { text: '!ping' });
    const rows = await eventually(
      () => messagesOf(group),
      (found) => found.length === 2,
    );
    expect(rows[1]).toEqual({
      seq: 2,
      text: 'pong',
      label: 'Ping bot',
      icon_url: 'https://bot.example/icon.png',
      hops: 1,
    });
    const [arrival] = await receiver.received(1);
    expect(arrival!.body).toMatchObject({ token, text: '!ping', channel_id: String(group.id) });
    expect(token).toMatch(/^[0-9a-f]{26}$/);
  });

  test('has its attachments in it', async () => {
    const group = await server.createGroup();
    const attachment = {
      color: 'danger',
      title: 'web-1',
      title_link: 'https://ci.example/7',
      text: 'is <https://a.example|down>',
    };
    await bot(group, json({ text: 'Status:', attachments: [attachment] }));
    await postJson(group.webhook, { text: '!status' });
    const texts = await eventually(
      () => textsOf(group),
      (found) => found.length === 2,
    );
    expect(texts[1]).toBe('Status:\n🔴 web-1\nhttps://ci.example/7\nis down (https://a.example)');
  });

  test('is posted once, also where the delivery is repeated and answered differently', async () => {
    const group = await server.createGroup();
    let n = 0;
    const { url, receiver } = await bot(
      group,
      toCommands((_arrival, res) => void res.end(JSON.stringify({ text: `pong ${(n += 1)}` }))),
    );
    await postJson(group.webhook, { text: '!ping' });
    await eventually(
      () => textsOf(group),
      (found) => found.length === 2,
    );
    await logged(url, 2);
    await postJson(`${url}/redeliver`, { only: [`${group.id}:1`] });
    await receiver.received(3);
    await logged(url, 3);
    expect(await textsOf(group)).toEqual(['!ping', 'pong 1']);
  });

  test('cannot be forestalled by a key of a caller', async () => {
    const group = await server.createGroup();
    const { id } = await bot(group, json({ text: 'pong' }));
    const headers = { 'idempotency-key': `reply:${id}:2` };
    await postJson(group.webhook, { text: 'hello' }, headers);
    await postJson(group.webhook, { text: '!ping' });
    const texts = await eventually(
      () => textsOf(group),
      (found) => found.length === 3,
    );
    expect(texts).toEqual(['hello', '!ping', 'pong']);
  });

  test.each<[string, Answerer]>([
    ['nothing', () => 200],
    ['a status without content', () => 204],
    ['a word', toCommands((_arrival, res) => void res.end('ok'))],
    ['a web page', toCommands((_arrival, res) => void res.end('<html>{"text":"pong"}'))],
    ['JSON that is no object', toCommands((_arrival, res) => void res.end('["pong"]'))],
    ['JSON without a text', json({ ok: true })],
    ['JSON that ends too early', toCommands((_arrival, res) => void res.end('{"text":"pong'))],
  ])('is none in an answer with %s', async (_what, answer) => {
    const group = await server.createGroup();
    const { url } = await bot(group, answer);
    await postJson(group.webhook, { text: '!ping' });
    expect(await logged(url, 1)).toMatchObject([{ outcome: 'delivered', category: null }]);
    expect(await textsOf(group)).toEqual(['!ping']);
  });

  test('is not posted from an answer that is no success', async () => {
    const group = await server.createGroup();
    const answers = [500, 200];
    const { url } = await bot(
      group,
      toCommands((_arrival, res) => void res.writeHead(answers.shift() ?? 200).end(JSON.stringify({ text: `pong` }))),
    );
    await postJson(group.webhook, { text: '!ping' });
    const texts = await eventually(
      () => textsOf(group),
      (found) => found.length === 2,
    );
    expect(texts).toEqual(['!ping', 'pong']);
    expect((await logged(url, 2)).slice(0, 2)).toMatchObject([{ outcome: 'failed' }, { outcome: 'delivered' }]);
  });

  test.each<[string, Answerer, string]>([
    [
      'has more than 256 KiB',
      toCommands((_arrival, res) => void res.end(JSON.stringify({ text: 'pong', more: 'x'.repeat(256 * 1_024) }))),
      'reply too large',
    ],
    ['does not end in time', toCommands((_arrival, res) => void res.write('{"text":"pong"')), 'reply incomplete'],
    [
      'breaks off',
      toCommands((_arrival, res) => {
        res.writeHead(200, { 'content-length': '100' }).write('{"text":"pong"');
        setImmediate(() => res.destroy());
      }),
      'reply incomplete',
    ],
    [
      'is nested too deeply',
      toCommands((_arrival, res) => void res.end(`{"text":${'['.repeat(10_000)}${']'.repeat(10_000)}}`)),
      'reply unreadable',
    ],
  ])('that %s is left out, and the delivery log says so', async (_what, answer, category) => {
    const group = await server.createGroup();
    const { url } = await bot(group, answer);
    await postJson(group.webhook, { text: '!ping' });
    expect(await logged(url, 1)).toMatchObject([{ outcome: 'delivered', code: 200, category }]);
    expect(await textsOf(group)).toEqual(['!ping']);
    await postJson(group.webhook, { text: 'next' });
    expect(await logged(url, 2)).toMatchObject([{}, { outcome: 'delivered', category: null }]);
  });

  test('may come later than the bodies that are read of others', async () => {
    const group = await server.createGroup();
    await bot(
      group,
      toCommands((_arrival, res) => {
        res.write('{"text":');
        setTimeout(() => res.end('"pong"}'), 300);
      }),
    );
    await postJson(group.webhook, { text: '!ping' });
    expect(
      await eventually(
        () => textsOf(group),
        (found) => found.length === 2,
      ),
    ).toEqual(['!ping', 'pong']);
  });

  test('is stored without what nothing may hold, however hostile it is', async () => {
    const group = await server.createGroup();
    const reply = {
      text: `\u0000pong\u001b[31m\ud800${'x'.repeat(50_000)}`,
      username: '\u202e'.repeat(10) + 'Bot\u0007'.repeat(500),
      icon_url: 'javascript:alert(1)',
    };
    await bot(group, json(reply));
    await postJson(group.webhook, { text: '!ping' });
    const [, row] = await eventually(
      () => messagesOf(group),
      (found) => found.length === 2,
    );
    expect(row!.text).toMatch(/^pong\[31m\ufffdx+… \(cut\)$/);
    expect(row!.label).toMatch(/^(?:Bot)+B?o?$/);
    expect(row!.icon_url).toBeNull();
  });

  test('ends at the bound of hops, where bots answer each other', async () => {
    const group = await server.createGroup();
    const answer: Answerer = (_arrival, res) => void res.end(JSON.stringify({ text: 'and you?' }));
    const first = await bot(group, answer, { skip: [] });
    const second = await bot(group, answer, { skip: [] });
    await postJson(group.webhook, { text: 'hello' });
    // Each message gets a reply from each of two bots: so 1, 2, 4 and 8 messages have 0, 1, 2 and 3 hops.
    await Promise.all([first, second].map(({ url }) => logged(url, 15)));
    expect((await messagesOf(group)).map(({ hops }) => hops).toSorted((a, b) => a - b)).toEqual([
      0,
      ...Array(2).fill(1),
      ...Array(4).fill(2),
      ...Array(8).fill(3),
    ]);
    const log = await logged(first.url, 15);
    expect(log.filter(({ category }) => category === 'reply hop limit')).toHaveLength(8);
    expect(log.every(({ outcome }) => outcome === 'delivered')).toBe(true);
  });

  test('does not reach the other bot where webhooks are left out, as they are by default', async () => {
    const group = await server.createGroup();
    const answer: Answerer = (_arrival, res) => void res.end(JSON.stringify({ text: 'pong' }));
    const first = await bot(group, answer, { skip: ['webhook', 'bot'] });
    const second = await bot(group, answer, { skip: ['webhook', 'bot'] });
    await postJson(group.webhook, { text: 'hello' });
    const pendingOf = ({ id }: Bot): Promise<{ pending: number }> => server.operate('hooks.info', { hook: id });
    for (const each of [first, second])
      await eventually(
        () => pendingOf(each),
        ({ pending }) => pending === 0,
      );
    expect(await textsOf(group)).toEqual(['hello']);
    expect(first.receiver.arrivals).toEqual([]);
  });

  test('is dropped in an archived group, and the delivery log says so', async () => {
    const group = await server.createGroup();
    const { url } = await bot(
      group,
      toCommands((_arrival, res) => {
        void server.operate('groups.archive', { group: group.id }).then(() => res.end('{"text":"pong"}'));
      }),
    );
    await postJson(group.webhook, { text: '!ping' });
    expect(await logged(url, 1)).toMatchObject([{ outcome: 'delivered', category: 'group archived' }]);
    expect(await textsOf(group)).toEqual(['!ping']);
  });

  test('is posted with the token that holds by then', async () => {
    const group = await server.createGroup();
    await bot(
      group,
      toCommands((_arrival, res) => {
        void server.operate('groups.rotate-token', { group: group.id }).then(() => res.end('{"text":"pong"}'));
      }),
    );
    await postJson(group.webhook, { text: '!ping' });
    expect(
      await eventually(
        () => textsOf(group),
        (found) => found.length === 2,
      ),
    ).toEqual(['!ping', 'pong']);
  });
});

describe('triggers and the maximum age', () => {
  test('pass messages over that do not begin with a trigger, and leave no trace of them in the log', async () => {
    const group = await server.createGroup();
    const { receiver, url, id } = await bot(group, () => 200, { triggers: ['!', 'deploy'] });
    for (let n = 0; n < 20; n += 1) await postJson(group.webhook, { text: `talk ${n}` });
    for (const text of ['!ping', 'deployed', 'deploy web', 'bye']) await postJson(group.webhook, { text });
    const arrivals = await receiver.received(2);
    expect(arrivals.map(({ body }) => [body.text, body.trigger_word])).toEqual([
      ['!ping', '!'],
      ['deploy web', 'deploy'],
    ]);
    await eventually(
      () => server.operate<{ pending: number }>('hooks.info', { hook: id }),
      ({ pending }) => pending === 0,
    );
    expect(await logged(url, 2)).toHaveLength(2);
  });

  test.each(['strict', 'none'])(
    'keep a stale command from its bot, with a row in the log (order %s)',
    async (order) => {
      const group = await server.createGroup();
      const { receiver, url } = await bot(group, json({ text: 'deployed' }), { triggers: ['!'], order });
      await readJson(await fetch(url, { method: 'PATCH', body: '{"paused":true}' }));
      for (const text of ['!deploy 1', 'talk', '!deploy 2', '!deploy 3']) await postJson(group.webhook, { text });
      await server.database.query(
        (sql) =>
          sql`update message set sent_at = sent_at - interval '301 seconds' where conversation_id = ${group.id} and seq <= 3`,
      );
      await readJson(await fetch(url, { method: 'PATCH', body: '{"paused":false}' }));
      await receiver.received(1);
      const log = await logged(url, 2);
      expect(log).toMatchObject([
        { outcome: 'skipped', category: 'too old', seq: 1, last_seq: 3, attempt: 0, code: null },
        { outcome: 'delivered', seq: 4 },
      ]);
      expect(receiver.arrivals.map(({ body }) => body.text)).toEqual(['!deploy 3']);
    },
  );

  test('end the repeats of a command that has become stale', async () => {
    const group = await server.createGroup();
    const { receiver, url, id } = await bot(group, () => 503, { max_age: 1, order: 'none' });
    await postJson(group.webhook, { text: '!deploy' });
    await receiver.received(2);
    const log = await eventually(
      () => logOf(url),
      (rows) => rows.some(({ outcome }) => outcome === 'skipped'),
    );
    expect(log[0]).toMatchObject({ outcome: 'skipped', category: 'too old', seq: 1 });
    await eventually(
      () => server.operate<{ pending: number }>('hooks.info', { hook: id }),
      ({ pending }) => pending === 0,
    );
  });

  test('can be lifted, for the messages that are sent again too', async () => {
    const group = await server.createGroup();
    const { receiver, url } = await bot(group, () => 200, { max_age: 60 });
    await postJson(group.webhook, { text: '!deploy' });
    await receiver.received(1);
    await logged(url, 1);
    await server.database.query(
      (sql) => sql`update message set sent_at = sent_at - interval '1 hour' where conversation_id = ${group.id}`,
    );
    await readJson(await fetch(url, { method: 'PATCH', body: '{"max_age":null}' }));
    await postJson(`${url}/redeliver`, { only: [`${group.id}:1`] });
    expect((await receiver.received(2))[1]!.body.text).toBe('!deploy');
  });
});

test('the token of a bot follows from the secret, and changes with it', async () => {
  const group = await server.createGroup();
  const { url, token, receiver } = await bot(group, () => 200);
  const rotated = await readJson(await fetch(url, { method: 'PATCH', body: '{"rotate_secret":true}' }));
  expect(rotated.body.token).toMatch(/^[0-9a-f]{26}$/);
  expect(rotated.body.token).not.toBe(token);
  await postJson(group.webhook, { text: 'hello' });
  const [arrival] = await receiver.received(1);
  expect(arrival!.body.token).toBe(rotated.body.token);
  // The token reveals nothing of the secret.
  const digest = createHash('sha256').update(rotated.body.secret).digest('hex');
  expect([rotated.body.secret, digest].some((text: string) => text.includes(rotated.body.token))).toBe(false);
});
