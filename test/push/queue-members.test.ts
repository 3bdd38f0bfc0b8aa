import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId, Seq } from '../../src/model/ids.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import { removeMembers } from '../storage/fixture.ts';
import { eventually } from '../support/eventually.ts';
import { PushStage } from './stage.ts';

let stage: PushStage;
let alice: AccountId;
let bob: AccountId;
beforeAll(async () => {
  stage = await PushStage.open();
});
beforeEach(async () => {
  [alice, bob] = (await stage.members('alice', 'bob')) as [AccountId, AccountId];
});
afterEach(() => stage.clear());
afterAll(() => stage.close());

describe('a member', () => {
  test('who has read is told nothing, and what was read meanwhile is withdrawn', async () => {
    await stage.device(alice);
    await stage.device(bob);
    stage.foreground.add(alice).add(bob);
    stage.start();
    await stage.post('hello');
    await stage.waits(2);
    await stage.read(alice, 1 as Seq);
    const left = await stage.waits(1);
    expect(left[0]).toMatchObject({ firstSeq: 1, lastSeq: 1 });
    // There is no notification of the new read position, so only the claim can find it.
    await stage.read(bob, 1 as Seq, { silent: true });
    stage.foreground.clear();
    await stage.database.query((sql) => sql`update push_pending set next_at = now()`);
    stage.start();
    await stage.settled(1);
    expect(stage.got()).toEqual([]);
  });

  test('who has read a part is told of the rest', async () => {
    await stage.device(alice);
    stage.foreground.add(alice);
    stage.start();
    for (const text of ['one', 'two', 'three']) await stage.post(text);
    await stage.setForeground(3);
    await stage.read(alice, 2 as Seq);
    stage.foreground.clear();
    await stage.database.query((sql) => sql`update push_pending set next_at = now()`);
    stage.start();
    await stage.settled(3);
    expect(stage.told()).toEqual([['web-1', 'Sender 0: three']]);
    expect(stage.got()[0]!.note.accountUnreadCount).toBe(1);
  });

  test('is told what the level of the conversation lets through, and nothing while it is muted', async () => {
    const [carol, dave, eve] = (await stage.members('carol', 'dave', 'eve')) as [AccountId, AccountId, AccountId];
    await stage.device(alice, 'web', 'all');
    await stage.device(bob, 'web', 'mentions');
    await stage.device(carol, 'web', 'nothing');
    await stage.device(dave, 'web', 'muted');
    await stage.device(eve, 'web', 'mute is over');
    await stage.setting(bob, 'mentions');
    await stage.setting(carol, 'nothing');
    await stage.setting(dave, 'all', 3_600);
    await stage.setting(eve, 'all', -1);
    stage.start();
    await stage.post('hello @carol and @dave');
    await stage.post('and @Bob, and @nobody');
    await stage.post('bye');
    await stage.settled(3);
    expect(new Set(stage.got().map(({ token }) => token))).toEqual(new Set(['all', 'mentions', 'mute is over']));
    const mentioned = stage.got().filter(({ token }) => token === 'mentions');
    expect(mentioned.map(({ note }) => [note.firstSeq, note.lastSeq, note.text, note.urgent])).toEqual([
      [2, 2, 'Sender 0: and @Bob, and @nobody', true],
    ]);
  });

  test('who chooses mentions alone while pushes wait is told of those only', async () => {
    for (const account of [alice, bob]) await stage.device(account, 'web', account === alice ? 'alice' : 'bob');
    stage.foreground.add(alice).add(bob);
    stage.start();
    await stage.post('hello');
    await stage.post('hello @bob');
    await stage.setForeground(2);
    for (const account of [alice, bob]) await stage.setting(account, 'mentions');
    stage.foreground.clear();
    await stage.database.query((sql) => sql`update push_pending set next_at = now()`);
    stage.start();
    await stage.settled(2);
    expect(stage.told()).toEqual([['bob', 'Sender 0: hello @bob']]);
  });

  test('who mutes the conversation, leaves it or ends the session while a push waits is not told', async () => {
    const [carol] = (await stage.members('carol')) as [AccountId];
    for (const account of [alice, bob, carol]) await stage.device(account);
    stage.foreground.add(alice).add(bob).add(carol);
    stage.start();
    await stage.post('hello');
    await stage.waits(3);
    await stage.setting(alice, 'all', 3_600);
    await removeMembers(stage.database, stage.group, [bob]);
    stage.foreground.clear();
    await stage.database.query(async (sql) => {
      await sql`update session set expires_at = now() where account_id = ${carol}`;
      await sql`update push_pending set next_at = now()`;
    });
    stage.start();
    await stage.settled(1);
    expect(stage.got()).toEqual([]);
    expect(await stage.logged()).toEqual([]);
  });

  test('is not told what somebody writes who is blocked, and is told what others write', async () => {
    await stage.device(alice);
    await stage.database.query((sql) => sql`insert into block (account_id, blocked_id) values (${alice}, ${bob})`);
    stage.start();
    await stage.post('from bob', bob);
    await stage.settled(1);
    expect(stage.got()).toEqual([]);
    await stage.post('from the group');
    await stage.post('from bob again', bob);
    await stage.settled(3);
    expect(stage.told().map(([, text]) => text)).toEqual(['Sender 0: from the group']);
  });
});

describe('somebody in the foreground', () => {
  test('who leaves it after it was looked at again is told with the next message at once', async () => {
    await stage.device(alice);
    stage.foreground.add(alice);
    stage.start();
    await stage.post('seen, perhaps');
    await stage.waits(1);
    await stage.database.query((sql) => sql`update push_pending set next_at = now()`);
    stage.start();
    await eventually(
      () => stage.pending(),
      ([row]) => row !== undefined && row.claimNumber > 0 && row.dueInS > 30,
    );
    stage.foreground.clear();
    // The queue caches for a moment which accounts are in the foreground. Each message makes the row due again.
    await eventually(
      async () => {
        await stage.post('not seen');
        return stage.told();
      },
      (told) => told.length > 0,
    );
    expect(stage.told()[0]![0]).toBe('web-1');
  });

  test('is not told at once, and not later either while still there', async () => {
    await stage.device(alice);
    stage.foreground.add(alice);
    stage.start();
    await stage.post('hello');
    const [row] = await stage.waits(1);
    expect(row!.dueInS).toBeGreaterThan(30);
    await stage.database.query(async (sql) => {
      await sql`update message set sent_at = sent_at - interval '61 seconds'`;
      await sql`update push_pending set next_at = now()`;
    });
    stage.start();
    await stage.settled(1);
    expect(stage.got()).toEqual([]);
  });

  test('who only was believed to be there, as of a node that died, is told when that is known', async () => {
    await stage.device(alice);
    stage.foreground.add(alice);
    const before = stage.start({}, { maxPresenceStalenessMs: 185_000 });
    await stage.post('hello');
    await stage.waits(1);
    await before.stop(1_000);
    await stage.database.query(async (sql) => {
      await sql`update message set sent_at = sent_at - interval '100 seconds'`;
      await sql`update push_pending set next_at = now()`;
    });
    const queue = stage.start({}, { maxPresenceStalenessMs: 185_000 });
    const [row] = await eventually(
      () => stage.pending(),
      ([first]) => first === undefined || first.dueInS > 30,
    );
    expect(row).toMatchObject({ attempts: 0 });
    await queue.stop(1_000);
    stage.foreground.clear();
    await stage.database.query((sql) => sql`update push_pending set next_at = now()`);
    stage.start();
    await stage.settled(1);
    expect(stage.told()).toEqual([['web-1', 'Sender 0: hello']]);
  });

  test('who came after the row was made is waited for as well', async () => {
    await stage.device(alice);
    await stage.post('hello');
    let looks = 0;
    const foreground = (): AccountId[] => ((looks += 1) > 1 ? [alice] : []);
    stage.start({}, { foreground });
    const [row] = await eventually(
      () => stage.pending(),
      ([first]) => first !== undefined && first.claimNumber === 1 && first.dueInS > 30,
    );
    expect(row).toMatchObject({ attempts: 0 });
    expect(stage.got()).toEqual([]);
  });

  test('who leaves it is told with the next message, of what was held back too', async () => {
    await stage.device(alice);
    stage.foreground.add(alice);
    stage.start();
    await stage.post('seen, perhaps');
    await stage.waits(1);
    stage.foreground.clear();
    // The queue caches the accounts in the foreground for a moment.
    await eventually(
      async () => {
        await stage.post('not seen');
        return stage.got().length;
      },
      (count) => count > 0,
    );
    expect(stage.got()[0]!.note).toMatchObject({ firstSeq: 1, text: 'Sender 0: not seen' });
  });

  test('whose connection was dead all the time is told about a minute later', async () => {
    await stage.device(alice);
    stage.foreground.add(alice);
    stage.start();
    await stage.post('hello');
    await stage.waits(1);
    stage.foreground.clear();
    await stage.database.query((sql) => sql`update push_pending set next_at = now()`);
    stage.start();
    await stage.settled(1);
    expect(stage.told()).toEqual([['web-1', 'Sender 0: hello']]);
  });
});

/** The connection pool, with the number of calls that took a connection. */
function counting(pool: Pool): { pool: Pool; calls: () => number } {
  let calls = 0;
  const counted = new Proxy(pool, {
    get: (target, name) => {
      if (name !== 'run' && name !== 'transaction') return Reflect.get(target, name, target) as unknown;
      return (...given: unknown[]) => {
        calls += 1;
        return (target[name] as (...values: unknown[]) => unknown).apply(target, given);
      };
    },
  });
  return { pool: counted, calls: () => calls };
}

describe('an installation without devices', () => {
  test('moves no cursor and keeps nothing, and begins with the first device, whoever registers it', async () => {
    const { pool, calls } = counting(stage.pools.general);
    stage.start({ pushDebounceMs: 0 }, { database: { general: pool } }, false);
    const startedMs = performance.now();
    for (let n = 0; n < 200; n += 1) await stage.post(`to nobody ${n}`);
    await eventually(calls, (count) => count >= 4);
    // The queue of each vendor reads the database four times a minute. The search for a first device runs at most once
    // a second.
    const seconds = (performance.now() - startedMs) / 1_000;
    expect(calls()).toBeLessThanOrEqual(3 * (1 + Math.ceil(seconds / 15)) + Math.ceil(seconds) + 1);
    expect(await stage.cursor()).toBe(0);
    await stage.device(alice);
    await stage.post('to somebody');
    await stage.settled(201);
    expect(stage.told()).toEqual([['web-1', 'Sender 0: to somebody']]);
  });
});
