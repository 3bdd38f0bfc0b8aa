import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../../support/server.ts';

interface Hook {
  readonly id: number;
  readonly state: string;
  readonly [field: string]: unknown;
}

interface HookPage {
  readonly hooks: readonly Hook[];
  readonly next: number | null;
}

let server: TestServer;
let receiver: Receiver;
beforeAll(async () => {
  // The server retries nothing within the test, so the state of a failing hook does not change.
  server = await TestServer.start({
    limits: { hookRegistrationsPerGroupPerMinute: 1_000 },
    delivery: { retryDelaysMs: [600_000] },
  });
  receiver = await Receiver.start(({ path }) => Number(path.slice(1, 4)));
});
afterAll(async () => {
  await server.stop();
  await receiver.stop();
});

const list = (input: unknown = {}): Promise<HookPage> =>
  server.operate('group' in (input as object) ? 'hooks.list' : 'hooks.list-all', input);
const ids = async (input: unknown = {}): Promise<number[]> => (await list(input)).hooks.map(({ id }) => id);
const info = (hook: number): Promise<Hook> => server.operate('hooks.info', { hook });

/** Registers a hook whose target answers with this status. */
async function register({ webhook }: TestGroup, status: number, query = ''): Promise<number> {
  const url = receiver.url(`/${status}${query}`);
  const { body } = await postJson(`${webhook}/reverse`, { url, description: 'watches', skip: ['bot'] });
  return body.id as number;
}

describe('the list of reverse webhooks', () => {
  test('has those of all groups with what waits for them and why, and never more of a target than its host', async () => {
    const [one, other] = [await server.createGroup(), await server.createGroup()];
    const failing = await register(one, 503, '?key=hidden');
    const active = await register(other, 200);
    for (const { webhook } of [one, other, one]) await postJson(webhook, { text: 'x' });
    await eventually(
      () => info(failing),
      ({ last_error }) => last_error !== null,
    );
    await eventually(
      () => info(active),
      ({ pending }) => pending === 0,
    );
    const page = await list({ after: failing - 1 });
    expect(page.next).toBeNull();
    expect(page.hooks).toEqual([
      {
        id: failing,
        group: one.id,
        state: 'failing',
        host: `127.0.0.1:${receiver.port}`,
        pending: 2,
        oldest_pending_at: expect.stringMatching(/^\d{4}-.*Z$/),
        last_error: { at: expect.any(String), category: 'status', code: 503 },
        last_success_at: null,
        next_attempt_at: expect.any(String),
        format: 'klatch',
        events: [],
        removed: null,
      },
      expect.objectContaining({ id: active, group: other.id, state: 'active', pending: 0, last_error: null }),
    ]);
    expect(JSON.stringify(page)).not.toMatch(/hidden|\/503/);
    expect(await ids({ group: one.id })).toEqual([failing]);
    expect(await ids({ after: failing - 1, state: 'failing' })).toEqual([failing]);
    await expect(list({ group: 'Nowhere' })).rejects.toThrow('There is no group Nowhere');
    await expect(list({ state: 'odd' })).rejects.toThrow(/^state: /);
  });

  test('shows removed hooks only when asked for, and until when they can be restored', async () => {
    const group = await server.createGroup();
    const [gone, deleted] = [await register(group, 410), await register(group, 200)];
    await fetch(`${group.webhook}/reverse/${deleted}`, { method: 'DELETE' });
    await postJson(group.webhook, { text: 'x' });
    await eventually(
      () => ids({ group: group.id }),
      (left) => left.length === 0,
    );
    const { hooks } = await list({ group: group.id, state: 'removed' });
    const by = (who: string, until: unknown) => ({ at: expect.any(String), by: who, restorable_until: until });
    expect(hooks).toEqual([
      expect.objectContaining({ id: gone, state: 'removed', removed: by('target', expect.any(String)) }),
      expect.objectContaining({ id: deleted, state: 'removed', removed: by('client', null) }),
    ]);
    const [{ removed }] = hooks as unknown as [{ removed: { at: string; restorable_until: string } }];
    expect(Date.parse(removed.restorable_until) - Date.parse(removed.at)).toBe(30 * 86_400_000);
  });

  test('comes in pages that together are the whole, each hook once', async () => {
    const group = await server.createGroup();
    const all: number[] = [];
    for (let n = 0; n < 5; n += 1) all.push(await register(group, 200, `?${n}`));
    for (const limit of [1, 2, 5, 6]) {
      const seen: number[] = [];
      let pages = 0;
      for (let after: number | null = 0; after !== null; pages += 1) {
        const page: HookPage = await list({ group: group.id, after, limit });
        expect(page.hooks.length).toBeLessThanOrEqual(limit);
        seen.push(...page.hooks.map(({ id }) => id));
        after = page.next;
      }
      expect({ limit, seen, pages }).toEqual({ limit, seen: all, pages: Math.ceil(5 / limit) });
    }
    await expect(list({ limit: 1_001 })).rejects.toThrow(/^limit: /);
  });

  test('by state finds exactly the hooks that show this state, whatever their counters are', async () => {
    const group = await server.createGroup();
    for (let n = 0; n < 12; n += 1) await register(group, 200, `?${n}`);
    await server.database.query(
      (sql) => sql`
        with numbered as (select id, row_number() over (order by id) - 1 as n from reverse_hook where conversation_id = ${group.id})
        update reverse_hook r set paused_at = case when n % 2 = 1 then now() end, failures = (n / 2) % 2,
          failing_since = case n / 4 when 1 then now() - interval '1 day' when 2 then now() - interval '4 days' end
        from numbered where numbered.id = r.id`,
    );
    const { hooks } = await list({ group: group.id });
    const states = ['active', 'failing', 'parked', 'paused'];
    expect(new Set(hooks.map(({ state }) => state))).toEqual(new Set(states));
    for (const state of states) {
      const those = hooks.filter((hook) => hook.state === state).map(({ id }) => id);
      expect({ state, ids: await ids({ group: group.id, state }) }).toEqual({ state, ids: those });
    }
  });
});

describe('the information about a reverse webhook', () => {
  test('has its whole target, its settings, its progress and its last attempts, and no secret', async () => {
    const group = await server.createGroup('Watched');
    await postJson(group.webhook, { text: 'before it' });
    const id = await register(group, 500, '?key=hidden');
    await postJson(group.webhook, { text: 'x' });
    const hook = await eventually(
      () => info(id),
      ({ last_error }) => last_error !== null,
    );
    const moment = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(hook).toEqual({
      id,
      group: group.id,
      group_title: 'Watched',
      url: receiver.url('/500?key=hidden'),
      host: `127.0.0.1:${receiver.port}`,
      description: 'watches',
      format: 'klatch',
      order: 'strict',
      batch: 1,
      signature: 'v1',
      skip: ['bot'],
      triggers: [],
      max_age: null,
      old_secret_until: null,
      created_at: moment,
      start_seq: 1,
      cursor: 1,
      event_cursor: null,
      events: [],
      last_seq: 2,
      state: 'failing',
      pending: 1,
      oldest_pending_at: moment,
      failures: 1,
      failing_since: moment,
      next_attempt_at: moment,
      last_success_at: null,
      last_error: { at: moment, category: 'status', code: 500 },
      removed: null,
      attempts: [
        {
          message_id: `${group.id}:2`,
          seq: 2,
          last_seq: 2,
          attempt: 1,
          at: moment,
          outcome: 'failed',
          category: 'status',
          code: 500,
          duration_ms: expect.any(Number),
        },
      ],
    });
  });

  test('shows the newest ten attempts, newest first', async () => {
    const group = await server.createGroup();
    const id = await register(group, 200);
    for (let n = 0; n < 12; n += 1) await postJson(group.webhook, { text: `${n}` });
    await eventually(
      () => info(id),
      ({ pending }) => pending === 0,
    );
    const { attempts } = (await info(id)) as unknown as { attempts: { seq: number }[] };
    expect(attempts.map(({ seq }) => seq)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
  });

  test('is an error for a number that no hook has', async () => {
    await expect(info(2_000_000_000)).rejects.toThrow('There is no reverse webhook 2000000000');
    await expect(info(0)).rejects.toThrow(/^hook: /);
  });
});
