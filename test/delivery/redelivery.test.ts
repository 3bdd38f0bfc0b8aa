import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { LaneFixture, seqs, upTo } from './fixtures/lane-fixture.ts';

let lane: LaneFixture;
beforeEach(async () => {
  lane = await LaneFixture.start();
});
afterEach(() => lane.stop());

const arrived = (): number[] => lane.receiver.arrivals.flatMap(seqs);
const isServed = () =>
  eventually(
    () => lane.retries(),
    (rows) => rows.length === 0,
  );

/** Inserts the rows that the request `redeliver {"only": […]}` inserts. */
async function requestRedelivery(wanted: readonly number[]): Promise<void> {
  await lane.server.database.query(
    (sql) => sql`
      insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
      select (select conversation_id from reverse_hook where id = ${lane.hook}), ${lane.hook}, s, s, 0, now() from unnest(${[...wanted]}::bigint[]) s`,
  );
  await lane.change({ description: 'asked again' });
}

describe('messages that are asked for again', () => {
  test('are sent once more with their old ids, and the log says so', async () => {
    await lane.register();
    await lane.post(1, 10);
    await lane.rowWhere(({ cursor }) => cursor === 10);
    await requestRedelivery([3, 7]);
    await isServed();
    expect(arrived()).toEqual([...upTo(10), 3, 7]);
    const [first, again] = lane.receiver.arrivals.filter((arrival) => seqs(arrival)[0] === 3);
    expect(again!.headers['webhook-id']).toBe(first!.headers['webhook-id']);
    expect(again!.raw).toBe(first!.raw);
  });

  test('do not hold back the others when they fail, and are not counted against the hook', async () => {
    let failing = false;
    await lane.register({}, (arrival) => (failing && seqs(arrival)[0] === 1 ? 500 : 200));
    await lane.post(1, 1);
    await lane.rowWhere(({ cursor }) => cursor === 1);
    failing = true;
    await requestRedelivery([1]);
    await lane.receiver.received(3);
    await lane.post(2, 5);
    await lane.rowWhere(({ cursor }) => cursor === 5);
    expect(await lane.row()).toMatchObject({ failures: 0, next_attempt_at: null, last_error_code: 500 });
    failing = false;
    await isServed();
  });

  test.each(['strict', 'none'])('remove a hook with order %s whose target answers 410 to them', async (order) => {
    let isGone = false;
    await lane.register({ order }, () => (isGone ? 410 : 200));
    await lane.post(1, 3);
    await lane.rowWhere(({ cursor }) => cursor === 3);
    isGone = true;
    await requestRedelivery([2]);
    const row = await lane.rowWhere(({ removed_at: removedAt }) => removedAt !== null);
    expect(row).toMatchObject({ removed_by: 'target', cursor: 3 });
    expect(arrived()).toEqual([1, 2, 3, 2]);
    expect((await lane.log()).at(-1)).toBe('2 unregistered');
  });

  test('come between the others of a strict hook, whose order stays', async () => {
    await lane.register();
    await lane.post(1, 5);
    await lane.rowWhere(({ cursor }) => cursor === 5);
    await lane.pause(true);
    await lane.post(6, 40);
    await requestRedelivery([1, 2, 3]);
    await lane.pause(false);
    await lane.rowWhere(({ cursor }) => cursor === 40);
    await isServed();
    expect(
      arrived()
        .slice(5)
        .filter((seq) => seq > 5),
    ).toEqual(upTo(40).slice(5));
    // The repeats alternate with the messages of the backlog, so the last repeat does not wait for the end of the
    // backlog.
    expect(arrived().lastIndexOf(3)).toBeLessThan(20);
  });

  test('come in their order when a hook that asked for none asks for it', async () => {
    let failing = true;
    await lane.register({ order: 'none' }, (arrival) => (failing && seqs(arrival)[0] === 1 ? 500 : 200));
    await lane.pause(true);
    await lane.post(1, 3);
    await requestRedelivery([2, 3]);
    await lane.change({ ordering: 'strict' });
    await lane.pause(false);
    await lane.rowWhere(({ failures }) => failures >= 2);
    await isServed();
    failing = false;
    await lane.rowWhere(({ cursor }) => cursor === 3);
    expect([...new Set(arrived())]).toEqual([1, 2, 3]);
  });

  test('are dropped when there is nothing (any more) to send', async () => {
    await lane.register({ skip: ['webhook'] });
    await lane.post(1, 2);
    await lane.rowWhere(({ cursor }) => cursor === 2);
    await requestRedelivery([1, 99]);
    await isServed();
    expect(lane.receiver.arrivals).toEqual([]);
  });

  test('are due though their time is far ahead, since the clock was put back after it was set', async () => {
    await lane.register();
    await lane.post(1, 1);
    await lane.rowWhere(({ cursor }) => cursor === 1);
    await lane.server.database.query(
      (sql) => sql`
        insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
        values ((select conversation_id from reverse_hook where id = ${lane.hook}), ${lane.hook}, 1, 1, 0, date_trunc('milliseconds', now()) + interval '3 days 1 microsecond')`,
    );
    await lane.change({ description: 'asked again' });
    await isServed();
    expect(arrived()).toEqual([1, 1]);
  });

  test('are served by the next process, when this one was stopped before', async () => {
    let failing = true;
    await lane.register({}, () => (failing ? 500 : 200));
    await lane.post(1, 1);
    await lane.rowWhere(({ failures }) => failures > 0);
    // Sets the cursor as if message 1 had arrived: messages after the cursor come only in their order.
    await lane.change({ cursor: 1, failures: 0, next_attempt_at: null });
    await requestRedelivery([1]);
    await eventually(
      () => lane.log(),
      (log) => log.length >= 3,
    );
    await lane.server.restart();
    failing = false;
    await isServed();
  });
});
