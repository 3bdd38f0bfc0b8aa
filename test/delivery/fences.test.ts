import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { openSigningKeys } from '../../src/delivery/headers.ts';
import { Leases, type LeaseEvents } from '../../src/delivery/leases.ts';
import { Sender } from '../../src/delivery/sender.ts';
import { Settler } from '../../src/delivery/settler.ts';
import { SettlementBuffer } from '../../src/delivery/settlement-buffer.ts';
import { silentLog } from '../../src/log.ts';
import type { LogEpoch, Seq } from '../../src/model/ids.ts';
import { lanesOfConversations, PARTITIONS } from '../../src/storage/hooks/lanes.ts';
import type { Settlement } from '../../src/storage/hooks/settlement.ts';
import { Fixture } from '../outbound/fixture.ts';
import { holdOpen, isWaiting, makeGroups, makeHook, post, UNTROUBLED, until } from '../storage/fixture.ts';
import type { StoredGroup } from '../storage/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { HeldLookups, LaneManagerFixture, patientClient, PATIENT_MS, SEALER } from './fixtures/lane-manager-fixture.ts';

// These fences apply when a node no longer holds a hook: they keep its lane from sending and its settlements from
// changing the hook.

let close: (() => Promise<unknown>)[];
beforeEach(() => {
  close = [];
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const each of close.reverse()) await each();
});

async function openDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  close.push(() => database.drop());
  return database;
}

async function openReceiver(): Promise<Receiver> {
  const receiver = await Receiver.start();
  close.push(() => receiver.stop());
  return receiver;
}

const QUIET: LeaseEvents = {
  onGainedOrRegained: () => {},
  onLost: () => {},
  onHandover: (partitions) => new Map(partitions.map((partition) => [partition, Promise.resolve()])),
  busyLanesByPartition: () => new Map(),
  notifyPeers: () => {},
  onIncompatibleSchema: () => {},
};

async function openLeases(database: TestDatabase): Promise<Leases> {
  const leases = new Leases({ pool: database.open().lease, holder: 'us', events: QUIET, log: silentLog() });
  close.push(() => leases.stop());
  await leases.start();
  return leases;
}

describe('a lease', () => {
  const CLOCKS = { monotonic: performance, wall: Date } as const;
  // A lane uses a lease only for the first 8 s of its 10 s: the rest is for writes that were sent in time.
  const USED_MS = 8_000;

  test.each(['monotonic', 'wall'] as const)('is used for 8 of its 10 s by the %s clock', async (name) => {
    const database = await openDatabase();
    const clock = CLOCKS[name];
    const askedAfter = clock.now();
    const leases = await openLeases(database);
    const askedBefore = clock.now();
    // The clock is replaced and restored within one tick, so that no renewal of the lease reads the replaced clock.
    const epochAt = (ms: number): number | null => {
      const stopped = jest.spyOn(clock, 'now').mockReturnValue(ms);
      try {
        return leases.usableEpochOf(7);
      } finally {
        stopped.mockRestore();
      }
    };
    expect(epochAt(askedAfter + USED_MS - 1)).toBe(1);
    expect(epochAt(askedBefore + USED_MS)).toBeNull();
  });
});

describe('a new timeline', () => {
  test('takes all leases at once, and they come back after a lease with epochs that the old one never had', async () => {
    const database = await openDatabase();
    let timeline = 1;
    const lost: number[] = [];
    const gained: number[] = [];
    const leases = new Leases({
      pool: database.open().lease,
      holder: 'us',
      events: { ...QUIET, onLost: (p) => lost.push(p.length), onGainedOrRegained: (p) => gained.push(p.length) },
      log: silentLog(),
      timeline: () => timeline,
    });
    close.push(() => leases.stop());
    await leases.start();
    expect(leases.usableEpochOf(7)).toBe(1);
    timeline = 2;
    const restsSince = performance.now();
    leases.suspendUntilLeasesExpire();
    expect(leases.usableEpochOf(7)).toBeNull();
    expect(leases.partitionsNotHandingOver).toHaveLength(PARTITIONS);
    await eventually(
      () => lost,
      (told) => told.length > 0,
    );
    // The row of the node still shows it as alive, so it keeps its share of the partitions.
    const living = await database.query((sql) => sql`select from node where expires_at > clock_timestamp()`);
    expect(living).toHaveLength(1);
    const epoch = await eventually(
      () => leases.usableEpochOf(7),
      (found) => found !== null,
    );
    expect(performance.now() - restsSince).toBeGreaterThanOrEqual(10_000);
    expect(epoch).toBe(1_001);
    expect([lost, gained]).toEqual([[PARTITIONS], [PARTITIONS, PARTITIONS]]);
  });
});

describe('settlements that gathered under two epochs', () => {
  test('count under the oldest, which another owner has fenced off', async () => {
    const database = await openDatabase();
    const pools = database.open({ flushTimeoutMs: PATIENT_MS, lockTimeoutMs: PATIENT_MS });
    const hook = await makeHook(database, (await makeGroups(database, 1))[0]!);
    await database.query((sql) => sql`update lease set holder = 'us', epoch = 2, expires_at = 'infinity'`);
    const settler = new Settler(pools.settle, silentLog());
    close.push(async () => settler.stop());
    let rejections = 0;
    const settlementBuffer = new SettlementBuffer(settler, 8, () => (rejections += 1));
    const settlement = (epoch: number, cursor: number): Settlement => {
      return { hookId: hook, generation: 0, epoch, ...UNTROUBLED, cursor: cursor as Seq, attempts: [] };
    };
    const row = await holdOpen(database.target, (tx) => tx`select from reverse_hook where id = ${hook} for update`);
    settlementBuffer.add(settlement(2, 1));
    await until(database, (sql) => isWaiting(sql, 'settle'));
    for (const [epoch, cursor] of [
      [1, 2],
      [2, 3],
    ] as const) {
      settlementBuffer.add(settlement(epoch, cursor));
    }
    await row.release();
    expect(await settlementBuffer.flush()).toBe(false);
    expect(rejections).toBe(1);
    const [stored] = await database.query((sql) => sql<{ cursor: number }[]>`select cursor from reverse_hook`);
    expect(stored).toEqual({ cursor: 1 });
  });
});

describe('while the connection to a target is being made', () => {
  /**
   * Starts a sender whose connection waits for the look-up of a name. Returns it with the function that ends the wait.
   */
  async function connecting() {
    const database = await openDatabase();
    const receiver = await openReceiver();
    const outbound = new Fixture();
    close.push(() => outbound.close());
    const lookups = new HeldLookups();
    const [group] = (await makeGroups(database, 1)) as [StoredGroup];
    const secretSealed = SEALER.seal('hook-secret', 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz');
    await makeHook(database, group, { secretSealed, url: `http://target.test:${receiver.port}/` });
    const pools = database.open();
    const [row] = await pools.general.run((sql) => lanesOfConversations(sql, [group.id]));
    const leases = await openLeases(database);
    const may = { go: true };
    const client = patientClient(outbound, lookups.resolve);
    const deps = { client, leases, isLaneActive: () => may.go, markHookSlowOrQuick: () => {}, receiver: null };
    const sender = new Sender(row!, openSigningKeys(SEALER, [], row!), deps);
    const request = {
      first: 1 as Seq,
      last: 1 as Seq,
      rev: 0,
      lastRev: null,
      revs: [],
      logEpoch: 0 as LogEpoch,
      body: Buffer.from('{}'),
      hops: 0,
    } as const;
    let writes = 0;
    const sent = sender.send(request, 'id', () => (writes += 1));
    await lookups.begun;
    const finish = async () => {
      lookups.release();
      return { sent: await sent, writes, arrivals: receiver.arrivals.length };
    };
    return { may, leases, finish };
  }

  test('nothing stands in the way of a request that may go', async () => {
    const { finish } = await connecting();
    expect(await finish()).toMatchObject({
      sent: { outcome: { delivered: true }, leaseEpoch: 1 },
      writes: 1,
      arrivals: 1,
    });
  });

  test('a pause keeps the request from being sent', async () => {
    const { may, finish } = await connecting();
    may.go = false;
    expect(await finish()).toEqual({ sent: 'cancelled', writes: 0, arrivals: 0 });
  });

  test('the end of the lease keeps it from being sent', async () => {
    const { leases, finish } = await connecting();
    leases.leave();
    expect(await finish()).toEqual({ sent: 'unknown', writes: 0, arrivals: 0 });
  });
});

describe('from the moment in which a change of a hook is announced', () => {
  test('its lane starts no attempt until the row was read again', async () => {
    const fixture = await LaneManagerFixture.start();
    close.push(() => fixture.stop());
    const [receiver, other] = [await openReceiver(), await openReceiver()];
    const [group, apart] = (await makeGroups(fixture.database, 2)) as [StoredGroup, StoredGroup];
    await fixture.hook(group, { url: receiver.url() });
    await fixture.hook(apart, { url: other.url() });
    const first = Promise.withResolvers<number>();
    receiver.answer = ({ body }) => (body.data.message.seq === 1 ? first.promise : 200);
    await fixture.tick(apart, other, 1);
    for (const text of ['one', 'two']) await fixture.log.append(post(group, text));
    await receiver.received(1);
    // Under this lock the server can neither read a hook nor settle. A lane may send several messages before their
    // results are settled.
    const table = await holdOpen(fixture.database.target, (tx) => tx`lock table reverse_hook in access exclusive mode`);
    fixture.bus.publish('hooksChanged', [group.id]);
    first.resolve(200);
    await fixture.tick(apart, other, 5);
    expect(receiver.seqs()).toEqual([1]);
    await table.release();
    await receiver.received(2);
    expect(receiver.seqs()).toEqual([1, 2]);
  });

  test('it starts none either by rows that were read before the hook was changed again', async () => {
    const fixture = await LaneManagerFixture.start();
    close.push(() => fixture.stop());
    const [receiver, other] = [await openReceiver(), await openReceiver()];
    const [group, apart] = (await makeGroups(fixture.database, 2)) as [StoredGroup, StoredGroup];
    await fixture.hook(group, { url: receiver.url() });
    await fixture.hook(apart, { url: other.url() });
    await fixture.tick(group, receiver, 1);
    await fixture.tick(apart, other, 1);
    const lockTable = () =>
      holdOpen(
        { ...fixture.database.target, lockTimeoutMs: PATIENT_MS },
        (tx) => tx`lock table reverse_hook in access exclusive mode`,
      );
    const first = await lockTable();
    fixture.bus.publish('hooksChanged', [group.id]);
    await until(fixture.database, (sql) => isWaiting(sql, 'general'));
    fixture.bus.publish('hooksChanged', [group.id]);
    await fixture.log.append(post(group, 'two'));
    // PostgreSQL grants this lock after the waiting read and before the next one.
    const second = lockTable();
    await until(fixture.database, (sql) => isWaiting(sql, 'test lock'));
    await first.release();
    const table = await second;
    await until(fixture.database, (sql) => isWaiting(sql, 'general'));
    await fixture.tick(apart, other, 5);
    expect(receiver.seqs()).toEqual([1]);
    await table.release();
    await receiver.received(2);
    expect(receiver.seqs()).toEqual([1, 2]);
  });
});
