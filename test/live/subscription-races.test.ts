import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { RELIABLE_EVENTS } from '../../src/bus/wire-format.ts';
import type { AccountId } from '../../src/model/ids.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { makeGroups, makeMembers, removeMembers, type StoredGroup } from '../storage/fixture.ts';
import { SubscriptionHarness, type Client } from './subscription-harness.ts';

let database: TestDatabase;
let group: StoredGroup;
let ann: AccountId;
let bob: AccountId;
let harness: SubscriptionHarness;

beforeEach(async () => {
  database = await createTestDatabase();
  group = (await makeGroups(database, 1))[0]!;
  [ann, bob] = (await makeMembers(database, group, ['ann', 'bob'])) as [AccountId, AccountId];
  harness = new SubscriptionHarness(database, group);
});

afterEach(async () => {
  harness.stop();
  await database.drop();
});

/** Resolves when the client has received the text. */
const hasReceived = (client: Client, text: string): Promise<unknown> =>
  eventually(
    () => client.texts,
    (texts) => texts.includes(text),
  );

/** Resolves when this many answers of the database are held back. */
const held = (pool: { held: number }, count: number): Promise<unknown> =>
  eventually(
    () => pool.held,
    (now) => now === count,
  );

describe('a member who is removed', () => {
  test('is sent nothing from the tick in which the removal is heard', async () => {
    const [first, second] = [await harness.follow(ann), await harness.follow(bob)];
    await removeMembers(database, group, [bob]);
    await harness.commit('after');
    // Here the answer about Bob's membership arrives after the new message.
    harness.members.hold();
    harness.memberChanged(bob);
    harness.notifyCommitted();
    await hasReceived(first, 'after');
    expect(second.sent).toEqual([]);
    harness.members.release();
    await eventually(
      () => second.methods,
      (methods) => methods.includes('conversation.left'),
    );
    expect(second.methods).toEqual(['conversation.left']);
  });

  test('does not come back by an answer that is older than the removal', async () => {
    const [first, second] = [await harness.follow(ann), await harness.follow(bob)];
    harness.members.hold();
    // The notification may be about a change of role. The database answers it with: bob is a member.
    harness.memberChanged(bob);
    await held(harness.members, 1);
    await removeMembers(database, group, [bob]);
    harness.memberChanged(bob);
    harness.members.releaseOne();
    // The feed has sent the next query, so it has already handled the older answer.
    await held(harness.members, 1);
    await harness.commit('after');
    harness.notifyCommitted();
    await hasReceived(first, 'after');
    expect(second.sent).toEqual([]);
    harness.members.release();
    await eventually(
      () => second.methods,
      (methods) => methods.includes('conversation.left'),
    );
    expect(second.methods).toEqual(['conversation.left']);
  });
});

describe('a client that begins to follow', () => {
  test('and is ahead of what this node has read gets nothing twice', async () => {
    const first = await harness.follow(ann);
    // Another node committed both messages and died before it sent a notification.
    const one = await harness.commit('one');
    const two = await harness.commit('two');
    const second = await harness.follow(bob, { known: one });
    await Promise.all([hasReceived(first, 'two'), hasReceived(second, 'two')]);
    expect(first.revs).toEqual([one, two]);
    expect(second.revs).toEqual([two]);
  });

  test('gets what was committed after the heads were read, although no notification of it came', async () => {
    const client = await harness.follow(bob, {
      whileListing: async () => {
        await harness.commit('missed');
        harness.bus.publish('resync', RELIABLE_EVENTS);
      },
    });
    // The feed reads at once. It does not wait for its comparison with all heads, every 10 s.
    expect(harness.counts.reads.fan_out).toBe(1);
    await hasReceived(client, 'missed');
  });

  test('gets what was committed after the heads were read, and is notified of meanwhile', async () => {
    const client = await harness.follow(bob, {
      whileListing: async () => {
        await harness.commit('new');
        harness.notifyCommitted();
      },
    });
    expect(harness.counts.reads.fan_out).toBe(1);
    await hasReceived(client, 'new');
  });
});

describe('what is read at once', () => {
  test('goes to all followers page by page, although one notification stands for all of it', async () => {
    const [first, second] = [await harness.follow(ann), await harness.follow(bob)];
    // These messages have half a MiB; a page holds 256 KiB.
    const revs: number[] = [];
    for (let n = 0; n < 16; n += 1) revs.push(await harness.commit('x'.repeat(32 * 1024)));
    harness.notifyCommitted();
    const hasAll = (client: Client): Promise<unknown> =>
      eventually(
        () => client.revs.length,
        (count) => count === revs.length,
      );
    await Promise.all([hasAll(first), hasAll(second)]);
    expect([first.revs, second.revs]).toEqual([revs, revs]);
    expect(harness.counts.reads.fan_out).toBeGreaterThan(1);
  });

  test('is remembered, and goes to a client from the change behind its last one', async () => {
    const first = await harness.follow(ann);
    const revs = [await harness.commit('one'), await harness.commit('two'), await harness.commit('three')];
    harness.notifyCommitted();
    await hasReceived(first, 'three');
    const second = await harness.follow(bob, { known: revs[1]! });
    await hasReceived(second, 'three');
    expect(second.revs).toEqual([revs[2]]);
    expect(harness.counts.reads).toMatchObject({ shared: 1, catch_up: 0 });
  });
});

describe('a text that is deleted while it is being read', () => {
  test('for one client is not remembered for the next', async () => {
    const rev = await harness.commit('secret');
    // Without a follower, the feed keeps nothing.
    const first = await harness.follow(ann);
    harness.changes.hold();
    const second = await harness.follow(bob, { known: 0 });
    await held(harness.changes, 1);
    await harness.deleteNewest();
    harness.changes.release();
    const isDeleted = (client: Client): Promise<unknown> =>
      eventually(
        () => client.revs,
        (revs) => revs.includes(rev + 1),
      );
    await Promise.all([isDeleted(first), isDeleted(second)]);
    const third = await harness.follow(ann, { known: 0 });
    await isDeleted(third);
    expect(third.texts.filter((text) => text !== '')).toEqual([]);
  });

  test('for all followers is not remembered for who comes later', async () => {
    const first = await harness.follow(ann);
    harness.changes.hold();
    const rev = await harness.commit('secret');
    harness.notifyCommitted();
    await held(harness.changes, 1);
    await harness.deleteNewest();
    harness.changes.release();
    await eventually(
      () => first.revs,
      (revs) => revs.includes(rev + 1),
    );
    const second = await harness.follow(bob, { known: rev - 1 });
    await eventually(
      () => second.revs,
      (revs) => revs.includes(rev + 1),
    );
    expect(second.texts.filter((text) => text !== '')).toEqual([]);
  });
});
