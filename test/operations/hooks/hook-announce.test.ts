import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { PostgresBus } from '../../../src/bus/postgres-bus.ts';
import { silentLog } from '../../../src/log.ts';
import type { ConversationId, HookId } from '../../../src/model/ids.ts';
import {
  announceAndConfirmChange,
  withAnnouncedHookChange,
  type AnnouncingServices,
} from '../../../src/operations/hooks/hook-announce.ts';
import { Connection } from '../../../src/storage/db/connection.ts';
import { listen } from '../../../src/storage/db/notifications.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { DatabaseProxy } from '../../support/database-proxy.ts';
import { within } from '../../run/machine-speed.ts';

const hook = { conversationId: 7 as ConversationId, hookId: 3 as HookId };
/** The longest time that a caller may wait, plus the time that this machine may add. */
const IN_ALL_MS = 9_500 + 8_500;
const ANSWER_MS = 2_000;

let database: TestDatabase;
const buses: PostgresBus[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const bus of buses.splice(0)) bus.stop();
  await database.drop();
});

/** Starts a node that listens for notifications. `address` replaces the address of its database. */
async function node(name: string, address = {}): Promise<AnnouncingServices & { heard: number[] }> {
  const opened = database.open(address);
  const bus = new PostgresBus(opened, silentLog(), { node: name });
  buses.push(bus);
  const heard: number[] = [];
  bus.subscribe({ hooksChanged: (ids) => heard.push(...ids) });
  const listening = new Promise<void>((resolve) => bus.subscribe({ resync: () => resolve() }));
  bus.start();
  await listening;
  return { bus, database: opened, node: name, log: silentLog(), heard };
}

/** Gives the lease of the hook's partition to a node, for `ms`. */
const lease = (holder: string, ms: number): Promise<unknown> =>
  database.query(
    (sql) => sql`
      update lease set holder = ${holder}, epoch = epoch + 1,
        expires_at = clock_timestamp() + ${ms} * interval '1 millisecond'
      where partition = ${hook.hookId}`,
  );

async function timed(work: Promise<unknown>): Promise<{ outcome: unknown; ms: number }> {
  const startedAt = performance.now();
  const outcome = await work.then(
    () => 'announced',
    (error: unknown) => (error as { code?: string }).code,
  );
  return { outcome, ms: performance.now() - startedAt };
}

describe('announceHookChange()', () => {
  test('resolves at once when nobody holds the lease, when it has run out, and when it is our own', async () => {
    const a = await node('a');
    await announceAndConfirmChange(a, hook);
    await lease('b', -1);
    await announceAndConfirmChange(a, hook);
    await lease('a', 10_000);
    const { outcome, ms } = await timed(announceAndConfirmChange(a, hook));
    expect(outcome).toBe('announced');
    expect(ms).toBeLessThan(within(ANSWER_MS - 100));
    expect(a.heard).toEqual([7, 7, 7]);
  });

  test('resolves when the node that holds the lease has heard of it, and not before', async () => {
    const [a, b] = [await node('a'), await node('b')];
    await lease('b', 10_000);
    const { outcome, ms } = await timed(announceAndConfirmChange(a, hook));
    expect(outcome).toBe('announced');
    expect(ms).toBeLessThan(within(ANSWER_MS - 100));
    expect(b.heard).toContain(7);
  });

  test('asks again, for a node that had no session in the first moment', async () => {
    const a = await node('a');
    await lease('b', 60_000);
    const announced = timed(announceAndConfirmChange(a, hook));
    const b = await node('b');
    expect((await announced).outcome).toBe('announced');
    expect(b.heard).toContain(7);
  });

  test('resolves when the lease of a node that says nothing has run out', async () => {
    const a = await node('a');
    await lease('frozen', 3_000);
    const { outcome, ms } = await timed(announceAndConfirmChange(a, hook));
    expect(outcome).toBe('announced');
    expect(ms).toBeGreaterThan(2_900);
    expect(ms).toBeLessThan(within(9_000));
  });

  test('resolves when the lease has changed hands: the new holder has read the row since', async () => {
    const a = await node('a');
    await lease('frozen', 60_000);
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const onNotify = (payload: string): void => void (payload.includes('?') && resolve());
    const frozen = new Connection(database.target, 'test', { onNotify });
    await frozen.run(listen, 5_000);
    const announced = timed(announceAndConfirmChange(a, hook));
    await asked;
    await lease('new', 60_000);
    const { outcome, ms } = await announced;
    frozen.close();
    expect(outcome).toBe('announced');
    expect(ms).toBeLessThan(within(9_000));
  });

  test('says that the change is stored when it is not confirmed in time, with a database or without', async () => {
    const proxies = [await DatabaseProxy.start(database.target), await DatabaseProxy.start(database.target)];
    const [a, refused, held] = [
      await node('a'),
      await node('b', proxies[0]!.address),
      await node('c', proxies[1]!.address),
    ];
    await lease('frozen', 60_000);
    const all = [a, refused, held].map((services) => timed(announceAndConfirmChange(services, hook)));
    await proxies[0]!.refuse();
    proxies[1]!.hold('both');
    for (const { outcome, ms } of await Promise.all(all)) {
      expect(outcome).toBe('change_unconfirmed');
      expect(ms).toBeLessThan(within(IN_ALL_MS));
    }
    for (const proxy of proxies) await proxy.stop();
  });

  test('goes on where the database was away for a moment', async () => {
    const proxy = await DatabaseProxy.start(database.target);
    const a = await node('a', proxy.address);
    await node('b');
    await lease('b', 60_000);
    await proxy.refuse();
    const announced = timed(announceAndConfirmChange(a, hook));
    await proxy.forward();
    expect((await announced).outcome).toBe('announced');
    buses[0]!.stop();
    await proxy.stop();
  });
});

describe('changeHook()', () => {
  test('gives what was written', async () => {
    expect(await withAnnouncedHookChange(await node('a'), hook, async () => 'written')).toBe('written');
  });

  test('is not over before the node that delivers for the hook cannot work by the old row any more', async () => {
    const a = await node('a');
    await lease('frozen', 60_000);
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const onNotify = (payload: string): void => void (payload.includes('?') && resolve());
    const frozen = new Connection(database.target, 'test', { onNotify });
    await frozen.run(listen, 5_000);
    let isOver = false;
    const changed = withAnnouncedHookChange(a, hook, async () => 'written').finally(() => (isOver = true));
    await asked;
    expect(isOver).toBe(false);
    await lease('new', 60_000);
    expect(await changed).toBe('written');
    frozen.close();
  });

  test('rejects with what writing rejected with, tells everybody nevertheless, and waits for nobody', async () => {
    const [a, b] = [await node('a'), await node('b')];
    await lease('frozen', 60_000);
    const lost = Object.assign(new Error('lost'), { code: 'lost' });
    const heard = new Promise<void>((resolve) => b.bus.subscribe({ hooksChanged: () => resolve() }));
    const { outcome, ms } = await timed(withAnnouncedHookChange(a, hook, () => Promise.reject(lost)));
    expect(outcome).toBe('lost');
    expect(ms).toBeLessThan(within(ANSWER_MS - 100));
    await heard;
    expect(a.heard).toEqual([7]);
  });
});
