import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { eventually } from '../support/eventually.ts';
import { Receiver, type Answerer } from '../support/receiver.ts';
import { postJson, readJson, TestServer, type TestGroup } from '../support/server.ts';

const FAST_RETRIES = [30, 60];

describe('forwarding to reverse webhooks', () => {
  let server: TestServer;
  const receivers: Receiver[] = [];
  beforeAll(async () => {
    const delivery = { retryDelaysMs: FAST_RETRIES, responseBodyReadMs: 200, maxInFlightPerHost: 4 };
    server = await TestServer.start({
      delivery,
      limits: { hookRegistrationsPerGroupPerMinute: 1_000, postsPerSecondPerToken: 10_000 },
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

  async function register(
    group: TestGroup,
    url: string,
    options: object = {},
  ): Promise<{ id: number; secret: string; url: string }> {
    const answer = await postJson(`${group.webhook}/reverse`, { url, ...options });
    expect(answer.status).toBe(201);
    return { ...answer.body, url: `${group.webhook}/reverse/${answer.body.id}` };
  }

  async function post(group: TestGroup, from: number, to: number): Promise<void> {
    for (let n = from; n <= to; n += 1)
      expect((await postJson(group.webhook, { text: `message ${n}` })).status).toBe(200);
  }

  const check = async (url: string): Promise<any> => (await readJson(await fetch(url))).body; // oxlint-disable-line typescript/no-explicit-any

  test('sends what the contract describes, signed for the Standard Webhooks library', async () => {
    const group = await server.createGroup('Ops');
    const receiver = await receive();
    const hook = await register(group, receiver.url('/in?key=1'));
    await postJson(group.webhook, { text: '/deploy web', username: 'CI' });
    const [arrival] = await receiver.received(1);
    expect(arrival!.path).toBe('/in?key=1');
    expect(arrival!.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': `${hook.id}_${group.id}_1`,
      'klatch-hops': '0',
      'user-agent': expect.stringMatching(/^Klatch\/\d+\.\d+\.\d+$/),
    });
    expect(new Webhook(hook.secret).verify(arrival!.raw, arrival!.headers as Record<string, string>)).toEqual(
      arrival!.body,
    );
    expect(arrival!.body.data).toMatchObject({
      group: { id: group.id, title: 'Ops' },
      message: { id: `${group.id}:1`, seq: 1, text: '/deploy web', attachments: [] },
      sender: { nick: null, kind: 'webhook' },
      command: { name: 'deploy', text: 'web' },
    });
  });

  test('begins with the first message after the registration', async () => {
    const group = await server.createGroup();
    await post(group, 1, 3);
    const receiver = await receive();
    await register(group, receiver.url());
    await post(group, 4, 5);
    await receiver.received(2);
    expect(receiver.seqs()).toEqual([4, 5]);
  });

  test('gives every hook of the group every message in order', async () => {
    const group = await server.createGroup();
    const receiver = await receive();
    const paths = ['/a', '/b', '/c'];
    for (const path of paths) await register(group, receiver.url(path));
    await Promise.all(Array.from({ length: 100 }, (_, n) => postJson(group.webhook, { text: `message ${n}` })));
    await receiver.received(300);
    const all = Array.from({ length: 100 }, (_, n) => n + 1);
    for (const path of paths) expect(receiver.seqs(path)).toEqual(all);
  });

  test('holds back what is behind a failing message, and repeats it under the same id', async () => {
    const group = await server.createGroup();
    const receiver = await receive();
    let failures = 3;
    receiver.answer = (arrival) => (arrival.body.data.message.seq === 2 && failures-- > 0 ? 500 : 200);
    const hook = await register(group, receiver.url());
    await post(group, 1, 4);
    await receiver.received(7);
    expect(receiver.seqs()).toEqual([1, 2, 2, 2, 2, 3, 4]);
    const ids = receiver.arrivals.filter((a) => a.body.data.message.seq === 2).map((a) => a.headers['webhook-id']);
    expect(new Set(ids)).toEqual(new Set([`${hook.id}_${group.id}_2`]));
    const health = await eventually(
      () => check(hook.url),
      (body) => body.pending === 0,
    );
    expect(health).toMatchObject({
      status: 'Ok',
      state: 'active',
      last_error: { category: 'status', code: 500 },
      next_attempt_at: null,
    });
  });

  test('shows a failing hook with its error and the next attempt', async () => {
    const group = await server.createGroup();
    const receiver = await receive(() => 503);
    const hook = await register(group, receiver.url());
    await post(group, 1, 2);
    await receiver.received(2);
    const health = await eventually(
      () => check(hook.url),
      (body) => body.state === 'failing',
    );
    expect(health).toMatchObject({ pending: 2, last_success_at: null, last_error: { category: 'status', code: 503 } });
    expect(Date.parse(health.next_attempt_at)).toBeGreaterThan(Date.now() - 10_000);
    expect(Date.parse(health.oldest_pending_at)).toBeLessThanOrEqual(Date.now());
  });

  test('is not slowed by a receiver that hangs', async () => {
    const group = await server.createGroup();
    const hanging = await receive(() => new Promise(() => {}));
    const healthy = await receive();
    await register(group, hanging.url());
    await register(group, healthy.url());
    await post(group, 1, 50);
    await healthy.received(50);
    expect(healthy.seqs()).toEqual(Array.from({ length: 50 }, (_, n) => n + 1));
    expect(new Set(hanging.seqs())).toEqual(new Set([1]));
  });

  test('unregisters a hook whose target answers 410, with a log row and a notice', async () => {
    const group = await server.createGroup();
    const receiver = await receive(() => 410);
    const hook = await register(group, receiver.url());
    await post(group, 1, 1);
    await receiver.received(1);
    await eventually(
      () => fetch(hook.url),
      (response) => response.status === 410,
    );
    const rows = await server.database.query(
      (sql) => sql`
      select r.removed_by, a.outcome, a.code,
        (select json_agg(n.kind order by n.rev) from notice n where n.conversation_id = r.conversation_id) as notices
      from reverse_hook r join delivery_attempt a on a.hook_id = r.id
      where r.id = ${hook.id}`,
    );
    const notices = ['created', 'hook_added', 'hook_removed'];
    expect(rows.map((row) => ({ ...row }))).toEqual([
      { removed_by: 'target', outcome: 'unregistered', code: 410, notices },
    ]);
    await post(group, 2, 3);
    expect((await register(group, receiver.url())).id).toBeGreaterThan(hook.id);
    expect(receiver.seqs()).toEqual([1]);
  });

  test('starts no attempt once a delete is answered', async () => {
    const group = await server.createGroup();
    let attempts = 0;
    const receiver = await receive(() => {
      attempts += 1;
      return 500;
    });
    const hook = await register(group, receiver.url());
    await post(group, 1, 1);
    await receiver.received(3);
    expect((await fetch(hook.url, { method: 'DELETE' })).status).toBe(202);
    const before = attempts;
    // The deliveries of another hook take so long that the deleted hook would retry many times.
    const other = await receive();
    await register(group, other.url());
    for (let n = 2; n <= 30; n += 1) await post(group, n, n);
    await other.received(29);
    expect(attempts - before).toBeLessThanOrEqual(1);
    expect(receiver.arrivals.length).toBe(attempts);
  });

  test('leaves out the kinds of sender that a hook skips', async () => {
    const group = await server.createGroup();
    const skipping = await receive();
    const all = await receive();
    const hook = await register(group, skipping.url(), { skip: ['webhook'] });
    await register(group, all.url());
    await post(group, 1, 5);
    await all.received(5);
    await eventually(
      () => check(hook.url),
      (body) => body.pending === 0,
    );
    expect(skipping.arrivals).toEqual([]);
  });

  test('takes 2xx headers as a success, whatever becomes of the body', async () => {
    const group = await server.createGroup();
    const receiver = await receive((_arrival, res) => {
      res.writeHead(200, { 'content-length': '1000000' });
      res.write('a little');
    });
    await register(group, receiver.url());
    await post(group, 1, 3);
    await receiver.received(3);
    expect(receiver.seqs()).toEqual([1, 2, 3]);
  });

  test('counts a redirect as a failure and does not follow it', async () => {
    const group = await server.createGroup();
    const elsewhere = await receive();
    const receiver = await receive((_arrival, res) => {
      res.writeHead(307, { location: elsewhere.url() }).end();
    });
    const hook = await register(group, receiver.url());
    await post(group, 1, 1);
    await receiver.received(2);
    const health = await eventually(
      () => check(hook.url),
      (body) => body.state === 'failing',
    );
    expect(health.last_error).toMatchObject({ category: 'status', code: 307 });
    expect(elsewhere.arrivals).toEqual([]);
  });

  test('honours Retry-After', async () => {
    const group = await server.createGroup();
    const receiver = await receive((_arrival, res) => {
      res.writeHead(429, { 'retry-after': '600' }).end();
    });
    const hook = await register(group, receiver.url());
    await post(group, 1, 1);
    const health = await eventually(
      () => check(hook.url),
      (body) => body.next_attempt_at !== null,
    );
    expect(Date.parse(health.next_attempt_at) - Date.now()).toBeGreaterThan(500_000);
    expect(receiver.arrivals.length).toBe(1);
  });

  test('hands hops on, so that a loop of groups ends', async () => {
    const [first, second] = [await server.createGroup(), await server.createGroup()];
    const answers: number[] = [];
    const bridge = async (target: TestGroup): Promise<Receiver> =>
      receive(async (arrival) => {
        const hops = { 'klatch-hops': String(arrival.headers['klatch-hops']) };
        answers.push((await postJson(target.webhook, { text: arrival.body.data.message.text }, hops)).status);
        return 200;
      });
    const [there, back] = [await bridge(second), await bridge(first)];
    await register(first, there.url());
    await register(second, back.url());
    await post(first, 1, 1);
    await eventually(
      async () => answers,
      (seen) => seen.includes(508),
    );
    expect(answers).toEqual([200, 200, 200, 508]);
  });
});
