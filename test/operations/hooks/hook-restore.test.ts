import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { eventually } from '../../support/eventually.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson, readJson, TestServer, type TestGroup } from '../../support/server.ts';

const DAYS_KEPT = 30;

interface HookRow {
  readonly generation: number;
  readonly cursor: number;
  readonly failures: number;
  readonly removed: boolean;
}

let server: TestServer;
let receiver: Receiver;
let group: TestGroup;
let status: number;

beforeAll(async () => {
  const limits = { hooksPerGroup: 2, hookRegistrationsPerGroupPerMinute: 1_000 };
  server = await TestServer.start({ limits, delivery: { retryDelaysMs: [50] } });
});
afterAll(() => server.stop());
beforeEach(async () => {
  status = 200;
  receiver = await Receiver.start(() => status);
  group = await server.createGroup();
});
afterEach(() => receiver.stop());

const post = (text: string) => postJson(group.webhook, { text });
const restore = (hook: number) => server.operate<{ pending: number }>('hooks.restore', { hook });

async function register(path = '/hook'): Promise<{ id: number; secret: string }> {
  const { status: code, body } = await postJson(`${group.webhook}/reverse`, { url: receiver.url(path) });
  expect(code).toBe(201);
  return body as { id: number; secret: string };
}

async function listed(): Promise<{ id: number; state: string; pending: number }[]> {
  return (await readJson(await fetch(`${group.webhook}/reverse`))).body;
}

async function row(id: number): Promise<HookRow> {
  const [found] = await server.database.query(
    (sql) => sql<HookRow[]>`
      select generation, cursor, failures, removed_at is not null as removed from reverse_hook where id = ${id}`,
  );
  return found!;
}

/** Posts a message that the target answers with 410. */
async function loseTo410(id: number): Promise<void> {
  status = 410;
  await post('gone');
  await eventually(
    () => row(id),
    ({ removed }) => removed,
  );
  status = 200;
}

describe('a hook that was removed by the 410 of its target', () => {
  test('comes back with its id, secret and cursor, and sends what it has missed at once', async () => {
    const { id, secret } = await register();
    await post('first');
    await receiver.received(1);
    await loseTo410(id);
    for (const text of ['missed', 'missed too']) await post(text);
    expect(await listed()).toEqual([]);
    const before = await row(id);
    // The messages are made old, so that no sweep (search for hooks with recent messages) finds the hook: only the
    // notification of the restore wakes the lane.
    await server.database.query(
      (sql) => sql`
        update conversation_head set last_at = now() - interval '1 day' where conversation_id = ${group.id}`,
    );
    expect(await restore(id)).toEqual({ id, group: group.id, host: `127.0.0.1:${receiver.port}`, pending: 3 });
    const arrivals = await receiver.received(5);
    expect(receiver.seqs()).toEqual([1, 2, 2, 3, 4]);
    for (const { raw, headers } of arrivals.slice(2)) {
      expect(() => new Webhook(secret).verify(raw, headers as Record<string, string>)).not.toThrow();
    }
    expect(arrivals[2]!.headers['webhook-id']).toBe(arrivals[1]!.headers['webhook-id']);
    const [after] = await eventually(listed, ([hook]) => hook?.pending === 0);
    expect(after).toMatchObject({ id, state: 'active' });
    expect(await row(id)).toMatchObject({ removed: false, failures: 0, cursor: 4 });
    expect((await row(id)).generation).toBe(before.generation + 1);
  });

  test('starts anew after failures that it had before', async () => {
    const { id } = await register();
    status = 503;
    await post('failing');
    await receiver.received(2);
    await loseTo410(id);
    await server.database.query(
      (sql) => sql`
        update reverse_hook set failures = 9, failing_since = now() - interval '9 days',
          next_attempt_at = now() + interval '50 minutes' where id = ${id}`,
    );
    const sent = receiver.arrivals.length;
    await restore(id);
    await receiver.received(sent + 2);
    expect(receiver.seqs().slice(sent)).toEqual([1, 2]);
    expect(await row(id)).toMatchObject({ failures: 0 });
  });

  test('is told of to the group, after the notice of its removal', async () => {
    const { id } = await register();
    await loseTo410(id);
    await restore(id);
    const notices = await server.database.query(
      (sql) => sql`select kind, details from notice where conversation_id = ${group.id} order by rev`,
    );
    expect([...notices]).toEqual([
      { kind: 'created', details: { title: 'Lobby' } },
      ...['hook_added', 'hook_removed', 'hook_restored'].map((kind) => ({
        kind,
        details: { hook: id, host: '127.0.0.1' },
      })),
    ]);
  });

  test('may be removed by its target again, and restored again', async () => {
    const { id } = await register();
    for (let round = 0; round < 2; round += 1) {
      await loseTo410(id);
      await restore(id);
      await eventually(listed, ([hook]) => hook?.pending === 0);
    }
  });

  test('comes back once when several ask at the same time', async () => {
    const { id } = await register();
    await loseTo410(id);
    const { generation } = await row(id);
    const results = await Promise.allSettled([restore(id), restore(id), restore(id)]);
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
    expect((await row(id)).generation).toBe(generation + 1);
  });
});

describe('a hook is not restored', () => {
  test('when there is none, or it is not removed', async () => {
    await expect(restore(2_000_000_000)).rejects.toThrow('There is no reverse webhook 2000000000');
    const { id } = await register();
    await expect(restore(id)).rejects.toThrow(`Reverse webhook ${id} is not removed: there is nothing to restore`);
  });

  test('when its own group deleted it', async () => {
    const { id } = await register();
    expect((await fetch(`${group.webhook}/reverse/${id}`, { method: 'DELETE' })).status).toBe(202);
    await expect(restore(id)).rejects.toThrow(
      `Reverse webhook ${id} was deleted by its group or an administrator, not by a 410 of its target: register it again`,
    );
    expect(await listed()).toEqual([]);
  });

  test('when its time is over, though its row is still there', async () => {
    const { id } = await register();
    await loseTo410(id);
    await server.database.query(
      (sql) => sql`
        update reverse_hook set removed_at = now() - ${`${DAYS_KEPT} days`}::interval where id = ${id}`,
    );
    await expect(restore(id)).rejects.toThrow(
      new RegExp(`^Reverse webhook ${id} was removed too long ago: .*retention\\.removed-hooks\\); register it again$`),
    );
    await server.database.query(
      (sql) => sql`
        update reverse_hook set removed_at = removed_at + interval '1 minute' where id = ${id}`,
    );
    expect(await restore(id)).toMatchObject({ id });
  });

  test('when its URL was registered anew', async () => {
    const { id } = await register();
    await loseTo410(id);
    const anew = await register();
    await expect(restore(id)).rejects.toThrow(
      `The URL of reverse webhook ${id} was registered again meanwhile, as reverse webhook ${anew.id}: remove that one first`,
    );
    await fetch(`${group.webhook}/reverse/${anew.id}`, { method: 'DELETE' });
    expect(await restore(id)).toMatchObject({ id });
  });

  test('when the group has as many hooks as it may have', async () => {
    const { id } = await register();
    await loseTo410(id);
    const others = [await register('/a'), await register('/b')];
    await expect(restore(id)).rejects.toThrow(
      `Group ${group.id} has 2 reverse webhooks already, as many as it may have (limits.hooks-per-group): remove one first`,
    );
    expect((await listed()).map((hook) => hook.id)).toEqual(others.map((hook) => hook.id));
  });
});
