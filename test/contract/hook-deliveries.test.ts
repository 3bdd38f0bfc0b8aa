import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Receiver } from '../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { ask, healthWhen, ISO_TIME, NOT_FOUND, registerHook, type TestHook } from './hook-fixture.ts';

let server: TestServer;
let group: TestGroup;
let hook: TestHook;

beforeAll(async () => {
  const limits = { hookRegistrationsPerGroupPerMinute: 100_000 };
  server = await TestServer.start({ limits, delivery: { retryDelaysMs: [20] } });
});
afterAll(() => server.stop());
beforeEach(async () => {
  group = await server.createGroup();
  hook = await registerHook(group, { url: 'https://receiver.example/a-private-path?key=hidden' });
});

interface Row {
  readonly seq: number;
  readonly attempt: number;
}

const deliveries = (query = '') => ask('GET', `${hook.url}/deliveries${query}`);

/** Inserts rows of the delivery log with these times (in ms), for the seqs from 1 on. */
async function log(times: readonly number[]): Promise<void> {
  await server.database.query(
    (sql) => sql`
      insert into delivery_attempt (conversation_id, hook_id, seq, last_seq, attempt, at, outcome, code, duration_ms)
      select (select conversation_id from reverse_hook where id = ${hook.id}), ${hook.id}, n, n, 1, to_timestamp(ms / 1000.0), 'delivered', 200, 5
      from unnest(${[...times]}::bigint[]) with ordinality as t (ms, n)`,
  );
}

/** Reads all pages of the delivery log by following their links. */
async function pages(limit: number): Promise<{ seqs: number[]; sizes: number[] }> {
  const seqs: number[] = [];
  const sizes: number[] = [];
  for (let query: string | null = `?limit=${limit}`; query !== null;) {
    const answer = await deliveries(query);
    expect(answer.status).toBe(200);
    sizes.push(answer.body.length);
    seqs.push(...answer.body.map(({ seq }: Row) => seq));
    query = /^<(\?[^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1] ?? null;
  }
  return { seqs, sizes };
}

describe('the delivery log', () => {
  test('is [] for a hook that nothing was sent to', async () => {
    const answer = await deliveries();
    expect([answer.status, answer.body, answer.headers.has('link')]).toEqual([200, [], false]);
    expect((await deliveries('/')).body).toEqual([]);
    expect((await deliveries('?before=&limit=')).body).toEqual([]);
  });

  test('tells of every attempt, newest first', async () => {
    let answers = 0;
    const receiver = await Receiver.start(() => ((answers += 1) === 1 ? 503 : 200));
    try {
      hook = await registerHook(group, { url: receiver.url('/a-private-path?key=hidden') });
      for (const text of ['a-private-text', 'second']) await postJson(group.webhook, { text });
      await receiver.received(3);
      await healthWhen(hook, ({ pending }) => pending === 0);
      const { body } = await deliveries();
      const row = { at: expect.stringMatching(ISO_TIME), duration_ms: expect.any(Number) };
      const second = { ...row, message_id: `${group.id}:2`, seq: 2, attempt: 1 };
      const first = { ...row, message_id: `${group.id}:1`, seq: 1 };
      expect(body).toEqual([
        { ...second, outcome: 'delivered', category: null, code: 200 },
        { ...first, attempt: 2, outcome: 'delivered', category: null, code: 200 },
        { ...first, attempt: 1, outcome: 'failed', category: 'status', code: 503 },
      ]);
      for (const part of ['private', 'hidden', '127.0.0.1', String(receiver.port)])
        expect(JSON.stringify(body)).not.toContain(part);
    } finally {
      await receiver.stop();
    }
  });

  test('is read in pages that neither miss a row nor show one twice, though all are of one time', async () => {
    const now = Date.now();
    await log([...Array<number>(5).fill(now - 1_000), ...Array<number>(6).fill(now)]);
    for (const limit of [1, 2, 3, 5, 10, 11, 100]) {
      const { seqs, sizes } = await pages(limit);
      expect(seqs).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(limit);
      expect(sizes).not.toContain(0);
    }
  });

  test('has at most 100 rows a page, and 100 if nothing is said', async () => {
    const now = Date.now();
    await log(Array.from({ length: 101 }, (_, n) => now + n));
    const answer = await deliveries();
    expect(answer.body).toHaveLength(100);
    expect(answer.headers.get('link')).toBe(`<?before=${new Date(now + 1).toISOString()}_2_1&limit=100>; rel="next"`);
  });

  test('goes on before a time', async () => {
    const now = Date.now();
    await log([now - 2_000, now - 1_000, now]);
    const before = new Date(now - 1_000).toISOString();
    expect((await deliveries(`?before=${before}`)).body.map(({ seq }: Row) => seq)).toEqual([1]);
    // The cursor of a row that retention has removed still works.
    expect((await deliveries(`?before=${before}_99_1`)).body.map(({ seq }: Row) => seq)).toEqual([2, 1]);
    expect((await deliveries('?before=2020-01-01T00:00:00Z')).body).toEqual([]);
  });

  test('does not show what belongs to another hook', async () => {
    await log([Date.now()]);
    const other = await registerHook(group, { url: 'https://other.example/' });
    expect((await ask('GET', `${other.url}/deliveries`)).body).toEqual([]);
  });

  const BEFORE = 'before: must be the place that the page before ended at, or a time such as "2026-11-20T08:00:00Z"';
  test.each([
    ['?limit=0', 'limit: must be a whole number from 1 to 100'],
    ['?limit=101', 'limit: must be a whole number from 1 to 100'],
    ['?limit=ten', 'limit: must be a whole number from 1 to 100'],
    ['?limit=1e1', 'limit: must be a whole number from 1 to 100'],
    ['?before=7:42', BEFORE],
    ['?before=2026-11-20T08:00:00Z_1', BEFORE],
    ['?before=2026-11-20T08:00:00Z_1_-1', BEFORE],
    ['?before=%00', BEFORE],
  ])('is 400 with a sentence: %s', async (query, message) => {
    expect(await deliveries(query)).toMatchObject({ status: 400, body: { message } });
  });

  test('is 410 for an unknown hook, one of another group and a removed one, 404 for a wrong token, 405 for another method', async () => {
    const other = await server.createGroup('Other');
    for (const url of [`${group.webhook}/reverse/0`, `${other.webhook}/reverse/${hook.id}`]) {
      const answer = await ask('GET', `${url}/deliveries`);
      expect([answer.status, answer.body]).toEqual([410, NOT_FOUND]);
    }
    const wrong = await ask('GET', `${hook.url.replace(group.token, 'x'.repeat(43))}/deliveries`);
    expect([wrong.status, wrong.body]).toEqual([404, { message: 'Wrong integration token' }]);
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const answer = await ask(method, `${hook.url}/deliveries`);
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
    }
    await ask('DELETE', hook.url);
    expect(await deliveries()).toMatchObject({ status: 410, body: NOT_FOUND });
    // The administrator sees the hook as long as its row is kept.
    expect(await server.operate('hooks.log', { hook: hook.id })).toEqual({
      id: hook.id,
      group: group.id,
      attempts: [],
      next: null,
    });
  });
});
