import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Receiver } from '../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { ask, healthWhen, NOT_FOUND, registerHook, retriesOf, rowOf, type TestHook } from './hook-fixture.ts';

let server: TestServer;
let receiver: Receiver;
let group: TestGroup;
let hook: TestHook;

beforeAll(async () => {
  const limits = { hookRegistrationsPerGroupPerMinute: 100_000, hookChangesPerGroupPerMinute: 1_000 };
  server = await TestServer.start({ limits, delivery: { retryDelaysMs: [3_600_000] } });
});
afterAll(() => server.stop());
beforeEach(async () => {
  receiver = await Receiver.start();
  group = await server.createGroup();
  for (const text of ['older', 'than the hook']) await post(text);
  hook = await registerHook(group, { url: receiver.url() });
});
afterEach(() => receiver.stop());

const post = (text: string) => postJson(group.webhook, { text });
const redeliver = (body: unknown) => ask('POST', `${hook.url}/redeliver`, body);
const id = (seq: number): string => `${group.id}:${seq}`;

/** Posts the messages 3 to 5, and waits until they are delivered and settled. */
async function deliverThree(): Promise<void> {
  for (const text of ['three', 'four', 'five']) await post(text);
  await receiver.received(3);
  await healthWhen(hook, ({ pending }) => pending === 0);
}

/** Sets the age of each message, in minutes. */
async function sentAgo(minutes: Record<number, number>): Promise<void> {
  await server.database.query(async (sql) => {
    for (const [seq, ago] of Object.entries(minutes)) {
      await sql`
        update message set sent_at = now() - make_interval(mins => ${ago})
        where conversation_id = ${group.id} and seq = ${Number(seq)}`;
    }
  });
}

const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();

describe('redelivery from a message', () => {
  test('sends it and all after it again, in order and under their old ids', async () => {
    await deliverThree();
    const answer = await redeliver({ from: id(4) });
    expect([answer.status, answer.body]).toEqual([202, { status: 'Ok', from: id(4), pending: 2 }]);
    const arrivals = await receiver.received(5);
    expect(receiver.seqs()).toEqual([3, 4, 5, 4, 5]);
    expect(arrivals[3]!.headers['webhook-id']).toBe(arrivals[1]!.headers['webhook-id']);
    await healthWhen(hook, ({ pending }) => pending === 0);
    expect(await rowOf(server, hook)).toMatchObject({ generation: 1, cursorGeneration: 1, cursor: 5 });
  });

  test('never begins before the registration', async () => {
    await deliverThree();
    for (const from of [id(1), id(2), '2020-01-01T00:00:00Z']) {
      const answer = await redeliver({ from });
      expect([answer.status, answer.body.from]).toEqual([202, id(3)]);
      await healthWhen(hook, ({ pending }) => pending === 0);
    }
    expect(Math.min(...receiver.seqs())).toBe(3);
  });

  test('from a time begins with the first message of that time or later', async () => {
    await deliverThree();
    await sentAgo({ 1: 500, 2: 400, 3: 300, 4: 200, 5: 100 });
    const cases = [
      [minutesAgo(301), id(3)],
      [minutesAgo(299), id(4)],
      [minutesAgo(200.5), id(4)],
      [minutesAgo(199), id(5)],
      [minutesAgo(600), id(3)],
      [minutesAgo(199 - 120).replace('Z', '+02:00'), id(5)],
    ];
    for (const [from, first] of cases) {
      expect(await redeliver({ from })).toMatchObject({ status: 202, body: { from: first } });
      await healthWhen(hook, ({ pending }) => pending === 0);
    }
  });

  test('from a time after the last message sends nothing', async () => {
    await deliverThree();
    await sentAgo({ 5: 1 });
    const answer = await redeliver({ from: new Date().toISOString() });
    expect([answer.status, answer.body]).toEqual([202, { status: 'Ok', from: null, pending: 0 }]);
    await post('six');
    await receiver.received(4);
    expect(receiver.seqs()).toEqual([3, 4, 5, 6]);
  });

  test('never passes over what is still to be delivered', async () => {
    await ask('PATCH', hook.url, { paused: true });
    for (const text of ['three', 'four', 'five']) await post(text);
    expect((await redeliver({ from: id(5) })).body).toEqual({ status: 'Ok', from: id(3), pending: 3 });
    expect(await rowOf(server, hook)).toMatchObject({ cursor: 2, paused: true });
  });

  test('lets a failing hook begin with a clean sheet, and drops single repeats from there on', async () => {
    await deliverThree();
    receiver.answer = () => 503;
    await post('six');
    await healthWhen(hook, ({ state }) => state === 'failing');
    // The lane is paused first, so that it does not send the inserted rows.
    await ask('PATCH', hook.url, { paused: true });
    await server.database.query(async (sql) => {
      await sql`
        update reverse_hook set rejections = 3, batch_last_seq = 6, unbatched_until = 6, parked_at = now(),
          next_attempt_at = now() + interval '1 hour', failing_since = now() where id = ${hook.id}`;
      await sql`
        insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
        select (select conversation_id from reverse_hook where id = ${hook.id}), ${hook.id}, n, n, 2, now() + interval '1 hour' from generate_series(3, 5) n`;
    });
    // The three inserted rows and the message after the cursor are pending.
    expect((await ask('GET', hook.url)).body.pending).toBe(4);
    expect((await redeliver({ from: id(4) })).body).toEqual({ status: 'Ok', from: id(4), pending: 4 });
    const clean = {
      failures: 0,
      rejections: 0,
      batchLastSeq: null,
      unbatchedUntil: null,
      failing: false,
      parked: false,
      waits: false,
    };
    expect(await rowOf(server, hook)).toMatchObject({ ...clean, cursor: 3 });
    expect((await retriesOf(server, hook)).map((row) => (row as number[])[0])).toEqual([3]);
  });

  test('of a hook that is behind its own group’s messages counts what was sent and not settled as unsent', async () => {
    // The settlements of earlier deliveries do not matter here: messages that a redelivery requests are sent again.
    for (let n = 0; n < 20; n += 1) await post(`message ${n}`);
    await receiver.received(5);
    const before = receiver.arrivals.length;
    const { body } = await redeliver({ from: id(3) });
    expect(body.from).toBe(id(3));
    await healthWhen(hook, ({ pending }) => pending === 0);
    expect(receiver.seqs().slice(before)).toEqual(expect.arrayContaining([3, 4, 5]));
  });
});

describe('redelivery of single messages', () => {
  test('asks for each of them once more, apart from the order', async () => {
    await deliverThree();
    await ask('PATCH', hook.url, { paused: true });
    const answer = await redeliver({ only: [id(5), id(3), id(5)] });
    expect([answer.status, answer.body]).toEqual([202, { status: 'Ok', from: id(3), pending: 2 }]);
    expect(await retriesOf(server, hook)).toEqual([
      [3, 3, 0, true],
      [5, 5, 0, true],
    ]);
    const health = (await ask('GET', hook.url)).body;
    expect(health).toMatchObject({ pending: 2, oldest_pending_at: expect.any(String), next_attempt_at: null });
    expect(await rowOf(server, hook)).toMatchObject({ cursor: 5, cursorGeneration: 0, generation: 2 });
  });

  test('makes one that waits for its repeat due at once', async () => {
    await deliverThree();
    await ask('PATCH', hook.url, { paused: true });
    await server.database.query(
      (sql) => sql`
        insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
        values ((select conversation_id from reverse_hook where id = ${hook.id}), ${hook.id}, 3, 4, 9, now() + interval '1 hour')`,
    );
    await redeliver({ only: [id(3)] });
    expect(await retriesOf(server, hook)).toEqual([[3, 4, 0, true]]);
    expect((await ask('GET', hook.url)).body.pending).toBe(2);
  });

  test('lets one that is still to be delivered come in its order, and only there', async () => {
    await ask('PATCH', hook.url, { paused: true });
    for (const text of ['three', 'four']) await post(text);
    expect((await redeliver({ only: [id(4)] })).body).toEqual({ status: 'Ok', from: id(4), pending: 2 });
    expect(await retriesOf(server, hook)).toEqual([]);
    await ask('PATCH', hook.url, { paused: false });
    await receiver.received(2);
    await healthWhen(hook, ({ pending }) => pending === 0);
    expect(receiver.seqs()).toEqual([3, 4]);
  });

  test('does not wait for the order of a hook that asks for none', async () => {
    await ask('PATCH', hook.url, { paused: true, order: 'none' });
    for (const text of ['three', 'four']) await post(text);
    // The requested message is after the cursor, so it already counts as pending.
    expect((await redeliver({ only: [id(4)] })).body).toEqual({ status: 'Ok', from: id(4), pending: 2 });
    expect(await retriesOf(server, hook)).toEqual([[4, 4, 0, true]]);
  });

  test('sends them at once, under their old ids, though their first arrival is not settled yet', async () => {
    for (const text of ['three', 'four', 'five']) await post(text);
    const first = [...(await receiver.received(3))];
    expect((await redeliver({ only: [id(5), id(3)] })).body).toMatchObject({ from: id(3) });
    const again = (await receiver.received(5)).slice(3);
    await healthWhen(hook, ({ pending }) => pending === 0);
    expect(
      receiver
        .seqs()
        .slice(3)
        .sort((a, b) => a - b),
    ).toEqual([3, 5]);
    const ids = first.map(({ headers }) => headers['webhook-id']);
    for (const { headers } of again) expect(ids).toContain(headers['webhook-id']);
    expect(receiver.arrivals).toHaveLength(5);
    expect(await retriesOf(server, hook)).toEqual([]);
    await post('six');
    await receiver.received(6);
    expect(receiver.seqs().at(-1)).toBe(6);
  });

  test('is refused for one that is older than the hook, and then none is sent', async () => {
    await deliverThree();
    const answer = await redeliver({ only: [id(4), id(2)] });
    const message = `only: ${id(2)} is older than the reverse webhook, which never gets it; leave it out`;
    expect([answer.status, answer.body]).toEqual([400, { message }]);
    expect(await retriesOf(server, hook)).toEqual([]);
  });

  test('is 503 past 1,000 messages to repeat', async () => {
    await deliverThree();
    await ask('PATCH', hook.url, { paused: true });
    await server.database.query(
      (sql) => sql`
        insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
        select (select conversation_id from reverse_hook where id = ${hook.id}), ${hook.id}, n, n, 1, now() from generate_series(1001, 1998) n`,
    );
    expect((await redeliver({ only: [id(3), id(4)] })).status).toBe(202);
    const answer = await redeliver({ only: [id(4), id(5)] });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '60']);
    expect(answer.body.message).toBe(
      'This reverse webhook has too many messages to repeat: at most 1000 at a time; nothing was done, please repeat it later',
    );
    // For a message that already has a retry row, the limit of rows does not matter.
    expect((await redeliver({ only: [id(3)] })).status).toBe(202);
  });
});

describe('skipping the backlog', () => {
  test('drops what is pending with one row in the log, and goes on with the next message', async () => {
    receiver.answer = () => 503;
    for (const text of ['three', 'four', 'five']) await post(text);
    await healthWhen(hook, ({ state, pending }) => state === 'failing' && pending === 3);
    const answer = await redeliver({ discard_backlog: true });
    expect([answer.status, answer.body]).toEqual([202, { status: 'Ok', skipped: 3 }]);
    const after = await ask('GET', hook.url);
    expect(after.body).toMatchObject({ state: 'active', pending: 0, oldest_pending_at: null, next_attempt_at: null });
    receiver.answer = () => 200;
    const sent = receiver.arrivals.length;
    await post('six');
    await receiver.received(sent + 1);
    expect(receiver.seqs().slice(sent)).toEqual([6]);
    const { body: log } = await ask('GET', `${hook.url}/deliveries`);
    const skipped = log.filter(({ outcome }: { outcome: string }) => outcome === 'skipped');
    expect(skipped).toEqual([
      {
        message_id: id(3),
        seq: 3,
        last_seq: 5,
        attempt: 0,
        at: expect.any(String),
        outcome: 'skipped',
        category: null,
        code: null,
        duration_ms: 0,
      },
    ]);
    expect(await rowOf(server, hook)).toMatchObject({ generation: 1, cursorGeneration: 1, cursor: 6 });
  });

  test('drops single repeats too, those of before the cursor', async () => {
    await deliverThree();
    await ask('PATCH', hook.url, { paused: true });
    await redeliver({ only: [id(4)] });
    expect((await redeliver({ discard_backlog: true })).body).toEqual({ status: 'Ok', skipped: 1 });
    expect(await retriesOf(server, hook)).toEqual([]);
    const { body: log } = await ask('GET', `${hook.url}/deliveries`);
    expect(log[0]).toMatchObject({ outcome: 'skipped', seq: 4, message_id: id(4) });
    expect(log[0]).not.toHaveProperty('last_seq');
    expect(await rowOf(server, hook)).toMatchObject({ cursor: 5, paused: true });
  });

  test('with nothing pending is 202 and leaves no trace', async () => {
    await deliverThree();
    const before = await rowOf(server, hook);
    expect(await redeliver({ discard_backlog: true })).toMatchObject({
      status: 202,
      body: { status: 'Ok', skipped: 0 },
    });
    expect(await rowOf(server, hook)).toEqual(before);
  });
});

describe('a redelivery', () => {
  const GIVE_ONE =
    'Give one of "from" (a message id or a time), "only" (a list of message ids) and "discard_backlog" (true)';
  const FROM =
    'from: must be the id of a message such as "7:42", or a time with its zone such as "2026-11-20T08:00:00Z"';
  test.each([
    ['', 'The body is not valid JSON: it ends too early; send such as {"from": "7:42"}'],
    ['{}', GIVE_ONE],
    ['{"from":"7:1","discard_backlog":true}', GIVE_ONE],
    ['{"discard_backlog":false}', 'discard_backlog: can only be true'],
    ['{"from":42}', 'from: Invalid input: expected string, received number'],
    ['{"from":""}', FROM],
    ['{"from":"yesterday"}', FROM],
    ['{"from":"2026-11-20T08:00:00"}', FROM],
    ['{"from":"2026-11-20T08:00Z"}', FROM],
    ['{"from":"2026-11-20"}', FROM],
    ['{"from":"2026-13-40T08:00:00Z"}', FROM],
    ['{"from":"GROUP:6"}', /^from: \d+:6 is not the id of a message of this group; the delivery log shows such ids$/],
    [
      '{"from":"1000000:1"}',
      'from: 1000000:1 is not the id of a message of this group; the delivery log shows such ids',
    ],
    [
      '{"from":"GROUP:99999999999999999999"}',
      'from: it is not the id of a message of this group; the delivery log shows such ids',
    ],
    ['{"from":"GROUP:0"}', 'from: it is not the id of a message of this group; the delivery log shows such ids'],
    ['{"only":[]}', 'only: Too small: expected array to have >=1 items'],
    [`{"only":[${Array(101).fill('"1:1"').join()}]}`, 'only: Too big: expected array to have <=100 items'],
    ['{"only":[3]}', 'only.0: Invalid input: expected string, received number'],
    [
      '{"only":["3"]}',
      'only: one of the ids is not the id of a message of this group; the delivery log shows such ids',
    ],
    ['{"only":["GROUP:6"]}', /^only: \d+:6 is not the id of a message of this group; the delivery log shows such ids$/],
    [
      '{"only":["1000000:1"]}',
      'only: 1000000:1 is not the id of a message of this group; the delivery log shows such ids',
    ],
  ])('is 400 with a sentence: %s', async (body, message) => {
    await deliverThree();
    const answer = await redeliver(body.replaceAll('GROUP', String(group.id)));
    expect([answer.status, answer.body]).toEqual([
      400,
      { message: typeof message === 'string' ? message : expect.stringMatching(message) },
    ]);
    expect(await rowOf(server, hook)).toMatchObject({ generation: 0 });
  });

  test('is 410 for an unknown hook or one of another group, 404 for a wrong token, 405 for another method', async () => {
    const other = await server.createGroup('Other');
    for (const url of [`${group.webhook}/reverse/0`, `${other.webhook}/reverse/${hook.id}`]) {
      const answer = await ask('POST', `${url}/redeliver`, { discard_backlog: true });
      expect([answer.status, answer.body]).toEqual([410, NOT_FOUND]);
    }
    const wrong = await ask('POST', `${hook.url.replace(group.token, 'x'.repeat(43))}/redeliver`, 'no json');
    expect([wrong.status, wrong.body]).toEqual([404, { message: 'Wrong integration token' }]);
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const answer = await ask(method, `${hook.url}/redeliver`);
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
    }
  });
});
