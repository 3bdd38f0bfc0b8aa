import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { eventually } from '../../support/eventually.ts';
import { Receiver, type Answerer } from '../../support/receiver.ts';
import { postJson, readJson, TestServer, type JsonAnswer, type TestGroup } from '../../support/server.ts';

/** By format: a path in the style of its product. */
const PATHS = {
  mattermost: '/hooks/bot',
  ntfy: '/mytopic',
  discord: '/api/webhooks/1/secret?wait=true',
  slack: '/services/T/B/x',
} as const;
type Format = keyof typeof PATHS;
const FORMATS = Object.keys(PATHS) as Format[];
const textOf = { mattermost: 'text', ntfy: 'message', discord: 'content', slack: 'text' } as const;

let server: TestServer;
const receivers: Receiver[] = [];
beforeAll(async () => {
  server = await TestServer.start({
    delivery: { retryDelaysMs: [30, 60] },
    limits: { hookRegistrationsPerGroupPerMinute: 1_000, hookChangesPerGroupPerMinute: 1_000 },
  });
});
afterAll(() => server.stop());
afterEach(async () => {
  for (const receiver of receivers.splice(0)) await receiver.stop();
});

async function receive(answer?: Answerer): Promise<Receiver> {
  const receiver = await Receiver.start(answer);
  receivers.push(receiver);
  return receiver;
}

const register = (group: TestGroup, url: string, options: object): Promise<JsonAnswer> =>
  postJson(`${group.webhook}/reverse`, { url, ...options });

const patch = async (url: string, body: object): Promise<JsonAnswer> =>
  readJson(await fetch(url, { method: 'PATCH', body: JSON.stringify(body) }));

// oxlint-disable-next-line typescript/no-explicit-any -- tests compare it whole
const logOf = async (url: string): Promise<any> => (await readJson(await fetch(`${url}/deliveries`))).body;

describe.each(FORMATS)('a reverse webhook with format %s', (format) => {
  test('gets a message in it, signed as every delivery', async () => {
    const group = await server.createGroup('Ops');
    const receiver = await receive();
    const { status, body } = await register(group, receiver.url(PATHS[format]), { format, skip: [] });
    expect(status).toBe(201);
    await postJson(group.webhook, { text: 'disk full', username: 'Monit', icon_url: 'https://monit.example/icon.png' });
    const [arrival] = await receiver.received(1);
    expect(arrival!.path).toBe(format === 'ntfy' ? '/' : PATHS[format]);
    expect(arrival!.body[textOf[format]]).toBe('disk full');
    expect(JSON.stringify(arrival!.body)).toContain(format === 'mattermost' ? 'Webhook' : 'Monit');
    expect(arrival!.headers).toMatchObject({ 'webhook-id': `${body.id}_${group.id}_1`, 'klatch-hops': '0' });
    const headers = arrival!.headers as Record<string, string>;
    const signed = new Webhook(body.secret);
    expect(
      signed.sign(headers['webhook-id']!, new Date(Number(headers['webhook-timestamp']) * 1_000), arrival!.raw),
    ).toBe(headers['webhook-signature']);
  });

  test('gets no posts of webhooks and bots unless it asks', async () => {
    const group = await server.createGroup();
    const receiver = await receive();
    const { body } = await register(group, receiver.url(PATHS[format]), { format });
    await postJson(group.webhook, { text: 'disk full' });
    // Waits until the message is delivered: a change that came before the lane has read the message would be part of
    // the delivery.
    await eventually(
      async () => (await readJson(await fetch(`${group.webhook}/reverse/${body.id}`))).body,
      ({ pending }) => pending === 0,
    );
    expect((await patch(`${group.webhook}/reverse/${body.id}`, { skip: [] })).status).toBe(200);
    await postJson(group.webhook, { text: 'disk fine' });
    const [arrival] = await receiver.received(1);
    expect(arrival!.body[textOf[format]]).toBe('disk fine');
  });

  test('is repeated, pinged and sent again like any other', async () => {
    const group = await server.createGroup('Ops');
    const answers = [500, 200, 200, 200];
    const receiver = await receive(() => answers.shift() ?? 200);
    const { body } = await register(group, receiver.url(PATHS[format]), { format, skip: [] });
    const url = `${group.webhook}/reverse/${body.id}`;
    await postJson(group.webhook, { text: 'disk full' });
    await receiver.received(2);
    await eventually(
      () => logOf(url),
      (rows) => rows.length === 2,
    );
    expect((await postJson(`${url}/redeliver`, { only: [`${group.id}:1`] })).status).toBe(202);
    const arrivals = await receiver.received(3);
    expect(arrivals.map((arrival) => arrival.body)).toEqual([arrivals[0]!.body, arrivals[0]!.body, arrivals[0]!.body]);
    expect((await postJson(`${url}/ping`, {})).body).toMatchObject({ delivered: true, code: 200 });
    const ping = (await receiver.received(4))[3]!;
    expect(ping.path).toBe(arrivals[0]!.path);
    expect(ping.headers['content-type']).toBe(arrivals[0]!.headers['content-type']);
    expect(ping.body[textOf[format]]).toBe(`Klatch tests reverse webhook ${body.id} of the group Ops.`);
  });

  test('is not told of a deleted message', async () => {
    const group = await server.createGroup();
    const receiver = await receive();
    const { body } = await register(group, receiver.url(PATHS[format]), { format, skip: [] });
    const url = `${group.webhook}/reverse/${body.id}`;
    await patch(url, { paused: true });
    await postJson(group.webhook, { text: 'secret' });
    await server.database.query(
      (sql) => sql`update message set deleted_at = now() where conversation_id = ${group.id}`,
    );
    await postJson(group.webhook, { text: 'disk full' });
    await patch(url, { paused: false });
    const [arrival] = await receiver.received(1);
    expect(arrival!.body[textOf[format]]).toBe('disk full');
  });

  test.each([
    [{ batch: 2 }, /^batch: must be 1, since format \w+ has one message in a request$/],
    [{ events: ['message.updated'] }, /^events: must be empty/],
    [{ triggers: ['two words'] }, /^triggers.0: must be one word/],
    [{ max_age: 0 }, /^max_age/],
  ])('refuses %j in a sentence, at registration and later', async (options, sentence) => {
    const group = await server.createGroup();
    const url = `http://127.0.0.1:9${PATHS[format]}`;
    const refused = await register(group, url, { format, ...options });
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringMatching(sentence)]);
    const { body } = await register(group, url, { format });
    const unchanged = await patch(`${group.webhook}/reverse/${body.id}`, options);
    expect([unchanged.status, unchanged.body.message]).toEqual([400, expect.stringMatching(sentence)]);
  });
});

describe('the format of a reverse webhook', () => {
  test('can be changed, and brings its own filter along', async () => {
    const group = await server.createGroup();
    const receiver = await receive();
    const { body } = await register(group, receiver.url('/topic'), {});
    const url = `${group.webhook}/reverse/${body.id}`;
    const info = async (): Promise<object> => server.operate('hooks.info', { hook: body.id });
    expect(await info()).toMatchObject({ format: 'klatch', skip: [], triggers: [], max_age: null });
    const changed = await patch(url, { format: 'mattermost', triggers: ['!'] });
    expect(changed.body).toMatchObject({ status: 'Ok', token: expect.stringMatching(/^[0-9a-f]{26}$/) });
    expect(changed.body).not.toHaveProperty('secret');
    expect(await info()).toMatchObject({
      format: 'mattermost',
      skip: ['webhook', 'bot'],
      triggers: ['!'],
      max_age: 300,
    });
    expect((await patch(url, { format: 'ntfy', max_age: 60, skip: [] })).body).not.toHaveProperty('token');
    expect(await info()).toMatchObject({ format: 'ntfy', skip: [], triggers: [], max_age: 60 });
    await postJson(group.webhook, { text: 'disk full' });
    expect((await receiver.received(1))[0]!.body).toMatchObject({ topic: 'topic', message: 'disk full' });
    await patch(url, { format: 'klatch' });
    await postJson(group.webhook, { text: 'disk fine' });
    expect((await receiver.received(2))[1]!.body.data.message.text).toBe('disk fine');
  });

  test('is ours unless another one is asked for, which has neither triggers nor a maximum age', async () => {
    const group = await server.createGroup();
    for (const options of [{ triggers: ['!'] }, { max_age: 60 }]) {
      const { status, body } = await register(group, 'http://127.0.0.1:9/', options);
      expect([status, body.message]).toEqual([400, expect.stringMatching(/is for the formats of other products/)]);
    }
    const { status, body } = await register(group, 'http://127.0.0.1:9/', { format: 'teams' });
    expect([status, body.message]).toEqual([400, 'format: must be one of klatch, mattermost, ntfy, discord, slack']);
  });

  test('ntfy needs a topic at the end of the address', async () => {
    const group = await server.createGroup();
    const { status, body } = await register(group, 'http://127.0.0.1:9/', { format: 'ntfy' });
    expect([status, body.message]).toEqual([400, expect.stringContaining('https://ntfy.sh/mytopic')]);
    const klatch = await register(group, 'http://127.0.0.1:9/', {});
    const refused = await patch(`${group.webhook}/reverse/${klatch.body.id}`, { format: 'ntfy' });
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('https://ntfy.sh/mytopic')]);
  });

  test('loses nothing of a batch that failed before it was changed', async () => {
    const group = await server.createGroup();
    const receiver = await receive(() => 503);
    const options = { order: 'none', batch: 10 };
    const { body } = await register(group, receiver.url('/topic'), options);
    const url = `${group.webhook}/reverse/${body.id}`;
    await patch(url, { paused: true });
    for (const text of ['a', 'b', 'c']) await postJson(group.webhook, { text });
    await patch(url, { paused: false });
    await receiver.received(1);
    await eventually(
      () =>
        server.database.query(
          (sql) => sql<{ last: number }[]>`select last_seq as last from delivery_retry where hook_id = ${body.id}`,
        ),
      (rows) => rows.length === 1 && rows[0]!.last === 3,
    );
    expect((await patch(url, { format: 'slack', batch: 1, skip: [] })).status).toBe(200);
    const before = receiver.arrivals.length;
    receiver.answer = () => 200;
    const arrivals = await eventually(
      () => receiver.arrivals.slice(before).filter((arrival) => typeof arrival.body.text === 'string'),
      (found) => new Set(found.map((arrival) => arrival.body.text)).size === 3,
    );
    expect(new Set(arrivals.map((arrival) => arrival.body.text))).toEqual(new Set(['a', 'b', 'c']));
    await eventually(
      () => server.operate<{ pending: number }>('hooks.info', { hook: body.id }),
      (info) => info.pending === 0,
    );
  });
});
