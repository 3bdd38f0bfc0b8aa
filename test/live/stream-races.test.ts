import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId } from '../../src/model/ids.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { makeGroups, makeMembers, removeMembers, type StoredGroup } from '../storage/fixture.ts';
import { StreamStage, type Client } from './stream-stage.ts';

let database: TestDatabase;
let group: StoredGroup;
let ann: AccountId;
let bob: AccountId;
let stage: StreamStage;

beforeEach(async () => {
  database = await createTestDatabase();
  group = (await makeGroups(database, 1))[0]!;
  [ann, bob] = (await makeMembers(database, group, ['ann', 'bob'])) as [AccountId, AccountId];
  stage = new StreamStage(database, group);
});

afterEach(async () => {
  stage.stop();
  await database.drop();
});

/** Resolves when the client has got the text. */
const got = (client: Client, text: string): Promise<unknown> =>
  eventually(
    () => client.texts,
    (texts) => texts.includes(text),
  );

/** Resolves when so many answers of the database wait. */
const held = (pool: { held: number }, count: number): Promise<unknown> =>
  eventually(
    () => pool.held,
    (now) => now === count,
  );

describe('a member who is removed', () => {
  test('is sent nothing from the tick in which the removal is heard', async () => {
    const [first, second] = [await stage.follow(ann), await stage.follow(bob)];
    await removeMembers(database, group, [bob]);
    await stage.commit('after');
    // What bob is now is known later than what is new.
    stage.members.hold();
    stage.memberChanged(bob);
    stage.advanced();
    await got(first, 'after');
    expect(second.sent).toEqual([]);
    stage.members.release();
    await eventually(
      () => second.methods,
      (methods) => methods.includes('conversation.left'),
    );
    expect(second.methods).toEqual(['conversation.left']);
  });

  test('does not come back by an answer that is older than the removal', async () => {
    const [first, second] = [await stage.follow(ann), await stage.follow(bob)];
    stage.members.hold();
    // A change of role, say: the answer is that bob is a member.
    stage.memberChanged(bob);
    await held(stage.members, 1);
    await removeMembers(database, group, [bob]);
    stage.memberChanged(bob);
    stage.members.releaseOne();
    // The newer question was asked: the older answer has been dealt with.
    await held(stage.members, 1);
    await stage.commit('after');
    stage.advanced();
    await got(first, 'after');
    expect(second.sent).toEqual([]);
    stage.members.release();
    await eventually(
      () => second.methods,
      (methods) => methods.includes('conversation.left'),
    );
    expect(second.methods).toEqual(['conversation.left']);
  });
});

describe('a client that begins to follow', () => {
  test('and is ahead of what this node has read gets nothing twice', async () => {
    const first = await stage.follow(ann);
    // Committed by a node that died before it could notify others.
    const one = await stage.commit('one');
    const two = await stage.commit('two');
    const second = await stage.follow(bob, { known: one });
    await Promise.all([got(first, 'two'), got(second, 'two')]);
    expect(first.revs).toEqual([one, two]);
    expect(second.revs).toEqual([two]);
  });

  test('gets what was committed after the heads were read, although no notification of it came', async () => {
    const client = await stage.follow(bob, {
      whileListing: async () => {
        await stage.commit('missed');
        stage.bus.publish('gap');
      },
    });
    // Not only by the look at all heads every 10 s.
    expect(stage.counts.reads.fan_out).toBe(1);
    await got(client, 'missed');
  });

  test('gets what was committed after the heads were read, and is notified of meanwhile', async () => {
    const client = await stage.follow(bob, {
      whileListing: async () => {
        await stage.commit('new');
        stage.advanced();
      },
    });
    expect(stage.counts.reads.fan_out).toBe(1);
    await got(client, 'new');
  });
});

describe('what is read at once', () => {
  test('goes to all followers page by page, although one notification stands for all of it', async () => {
    const [first, second] = [await stage.follow(ann), await stage.follow(bob)];
    // Half a MiB; a page holds 256 KiB.
    const revs: number[] = [];
    for (let n = 0; n < 16; n += 1) revs.push(await stage.commit('x'.repeat(32 * 1024)));
    stage.advanced();
    const hasAll = (client: Client): Promise<unknown> =>
      eventually(
        () => client.revs.length,
        (count) => count === revs.length,
      );
    await Promise.all([hasAll(first), hasAll(second)]);
    expect([first.revs, second.revs]).toEqual([revs, revs]);
    expect(stage.counts.reads.fan_out).toBeGreaterThan(1);
  });

  test('is remembered, and goes to a client from the change behind its last one', async () => {
    const first = await stage.follow(ann);
    const revs = [await stage.commit('one'), await stage.commit('two'), await stage.commit('three')];
    stage.advanced();
    await got(first, 'three');
    const second = await stage.follow(bob, { known: revs[1]! });
    await got(second, 'three');
    expect(second.revs).toEqual([revs[2]]);
    expect(stage.counts.reads).toMatchObject({ shared: 1, catch_up: 0 });
  });
});

describe('a text that is deleted while it is being read', () => {
  test('for one client is not remembered for the next', async () => {
    const rev = await stage.commit('secret');
    // Somebody has to follow, or nothing is remembered.
    const first = await stage.follow(ann);
    stage.changes.hold();
    const second = await stage.follow(bob, { known: 0 });
    await held(stage.changes, 1);
    await stage.deleteNewest();
    stage.changes.release();
    const isDeleted = (client: Client): Promise<unknown> =>
      eventually(
        () => client.revs,
        (revs) => revs.includes(rev + 1),
      );
    await Promise.all([isDeleted(first), isDeleted(second)]);
    const third = await stage.follow(ann, { known: 0 });
    await isDeleted(third);
    expect(third.texts.filter((text) => text !== '')).toEqual([]);
  });

  test('for all followers is not remembered for who comes later', async () => {
    const first = await stage.follow(ann);
    stage.changes.hold();
    const rev = await stage.commit('secret');
    stage.advanced();
    await held(stage.changes, 1);
    await stage.deleteNewest();
    stage.changes.release();
    await eventually(
      () => first.revs,
      (revs) => revs.includes(rev + 1),
    );
    const second = await stage.follow(bob, { known: rev - 1 });
    await eventually(
      () => second.revs,
      (revs) => revs.includes(rev + 1),
    );
    expect(second.texts.filter((text) => text !== '')).toEqual([]);
  });
});
