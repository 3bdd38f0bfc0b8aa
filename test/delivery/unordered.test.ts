import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { MAX_IN_FLIGHT } from '../../src/delivery/unordered-strategy.ts';
import { eventually, HANG_MS } from '../support/eventually.ts';
import { postJson } from '../support/server.ts';
import { LaneFixture, rangeOf, seqs, upTo } from './fixtures/lane-fixture.ts';

let lane: LaneFixture;
beforeEach(async () => {
  // The time-out for answers is longer than any test holds a request.
  lane = await LaneFixture.start({ delivery: { responseHeadersTimeoutMs: HANG_MS } });
});
afterEach(() => lane.stop());

const arrived = (): number[] => lane.receiver.arrivals.flatMap(seqs);
const sorted = (numbers: readonly number[]): number[] => [...numbers].sort((a, b) => a - b);

describe('a hook with order none', () => {
  test('gets every message once', async () => {
    await lane.register({ order: 'none' });
    await lane.post(1, 60);
    await lane.rowWhere((row) => row['cursor'] === 60);
    expect(sorted(arrived())).toEqual(upTo(60));
  });

  test(`has ${MAX_IN_FLIGHT} requests in flight and no more, and a word starts further ones`, async () => {
    const open: (() => void)[] = [];
    await lane.register({ order: 'none' }, () => new Promise<number>((resolve) => open.push(() => resolve(200))));
    await lane.post(1, 2);
    await lane.receiver.received(2);
    await lane.post(3, MAX_IN_FLIGHT + 5);
    await lane.receiver.received(MAX_IN_FLIGHT);
    const other = await lane.server.createGroup();
    // These posts take so long that one more request would arrive, if the lane sent one.
    for (let n = 0; n < 5; n += 1) await fetch(other.webhook, { method: 'POST', body: 'time passes' });
    expect(open).toHaveLength(MAX_IN_FLIGHT);
    for (const answer of open.splice(0)) answer();
    await lane.receiver.received(MAX_IN_FLIGHT + 5);
    for (const answer of open.splice(0)) answer();
    await lane.rowWhere((row) => row['cursor'] === MAX_IN_FLIGHT + 5);
    expect(sorted(arrived())).toEqual(upTo(MAX_IN_FLIGHT + 5));
  });

  test.each([200, 500])(
    'whose first request hangs until it is answered %d has the others, once, and a cursor that follows',
    async (status) => {
      const held = Promise.withResolvers<number>();
      let first = 0;
      await lane.register({ order: 'none' }, (arrival) =>
        seqs(arrival)[0] === 1 && ++first === 1 ? held.promise : 200,
      );
      await lane.post(1, 100);
      await lane.receiver.received(100);
      // A kill would repeat only the messages after the cursor, and those with a retry row.
      await lane.rowWhere((row) => row['cursor'] === 100);
      expect(await lane.retries()).toEqual([1]);
      expect((await lane.health()).pending).toBe(1);
      held.resolve(status);
      await eventually(
        () => lane.retries(),
        (rows) => rows.length === 0,
      );
      expect(sorted(arrived())).toEqual(sorted([...upTo(100), ...(status === 200 ? [] : [1])]));
      expect(await lane.health()).toMatchObject({ pending: 0, state: 'active' });
    },
  );

  test('sends what is on its way no second time, though its row is due', async () => {
    const held = Promise.withResolvers<number>();
    let failing = true;
    await lane.register({ order: 'none' }, (arrival) => {
      if (seqs(arrival)[0] === 1) return held.promise;
      return failing && seqs(arrival)[0] === 30 ? 500 : 200;
    });
    await lane.post(1, 40);
    await eventually(
      () => lane.retries(),
      (rows) => rows.join() === '1,30',
    );
    await lane.server.database.query((sql) => sql`update delivery_retry set next_at = now() where seq = 1`);
    const before = lane.receiver.arrivals.length;
    // Before each of these two requests, the lane has read the due rows.
    await lane.receiver.received(before + 2);
    failing = false;
    held.resolve(200);
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    expect(arrived().filter((seq) => seq === 1)).toEqual([1]);
  });

  test('begins slowly after an outage, but waits for no request that hangs since before it', async () => {
    const held = Promise.withResolvers<number>();
    let failing = true;
    await lane.register({ order: 'none' }, (arrival) => {
      if (seqs(arrival)[0] === 1) return held.promise;
      return failing && seqs(arrival)[0] === 2 ? 500 : 200;
    });
    await lane.post(1, 2);
    // Two failures in a row are an outage, which the delivery of message 3 ends.
    await lane.rowWhere(({ failures }) => failures >= 2);
    await lane.post(3, 12);
    await eventually(arrived, (numbers) => upTo(12).every((seq) => numbers.includes(seq)));
    failing = false;
    held.resolve(200);
    await lane.rowWhere(({ cursor }) => cursor === 12);
    expect(
      arrived()
        .filter((seq) => seq !== 2)
        .sort((a, b) => a - b),
    ).toEqual([1, ...upTo(12).slice(2)]);
  });

  test('repeats a failing message apart, and nothing waits for it', async () => {
    let failing = true;
    await lane.register({ order: 'none' }, (arrival) => (failing && seqs(arrival)[0] === 2 ? 500 : 200));
    await lane.post(1, 30);
    await lane.rowWhere((row) => row['cursor'] === 30);
    expect(await lane.retries()).toEqual([2]);
    failing = false;
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    const ids = new Set(lane.receiver.arrivals.filter((a) => seqs(a)[0] === 2).map((a) => a.headers['webhook-id']));
    expect(ids.size).toBe(1);
    expect(await lane.row()).toMatchObject({ failures: 0, cursor: 30 });
  });

  test('stops reading on after 20 failures without a success, and loses nothing', async () => {
    let down = true;
    await lane.register({ order: 'none' }, () => (down ? 503 : 200));
    await lane.post(1, 80);
    const row = await lane.rowWhere(({ failures }) => failures >= 40);
    expect(row['cursor']).toBeLessThanOrEqual(20 + MAX_IN_FLIGHT);
    expect(Math.max(...arrived())).toBeLessThanOrEqual(20 + MAX_IN_FLIGHT);
    down = false;
    await lane.rowWhere(({ cursor }) => cursor === 80);
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    expect(new Set(arrived()).size).toBe(80);
    expect((await lane.row())['failures']).toBe(0);
  });

  test('does not wait for the hour of each when the target is back', async () => {
    await lane.stop();
    lane = await LaneFixture.start({ delivery: { retryDelaysMs: [50, 50, 50, 3_600_000] } });
    let down = true;
    await lane.register({ order: 'none' }, () => (down ? 503 : 200));
    await lane.post(1, 5);
    // All messages have failed four times, so their next attempts are due in an hour.
    await lane.rowWhere(({ failures }) => failures >= 20);
    down = false;
    await lane.server.database.query((sql) => sql`update delivery_retry set next_at = now() where seq = 3`);
    await lane.change({ description: 'read again' });
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
  });

  test('goes on after a restart of its lane with what is repeated apart', async () => {
    let failing = true;
    await lane.register({ order: 'none' }, () => (failing ? 500 : 200));
    await lane.post(1, 3);
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 3,
    );
    await lane.change({ description: 'changed' });
    failing = false;
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    expect((await lane.row())['cursor']).toBe(3);
  });

  test('gets batches, those that failed as they were and those that were refused one by one', async () => {
    let failures = 1;
    await lane.register({ order: 'none', batch: 5 }, (arrival) => {
      if (seqs(arrival).includes(2) && seqs(arrival).length > 1) return 413;
      return seqs(arrival).includes(7) && failures-- > 0 ? 500 : 200;
    });
    await lane.pause(true);
    await lane.post(1, 12);
    await lane.pause(false);
    await lane.rowWhere(({ cursor }) => cursor === 12);
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    const ranges = lane.receiver.arrivals.map(rangeOf);
    expect(ranges.filter((range) => range === '6-10')).toHaveLength(2);
    expect(new Set(ranges)).toEqual(new Set(['1-5', '6-10', '11-12', '1', '2', '3', '4', '5']));
  });

  test.each([200, 500])(
    'keeps the rest of a batch that failed, when its first message, asked for by itself, is answered %i meanwhile',
    async (status) => {
      const accepted: string[] = [];
      let answer = (): void => {};
      let batches = 0;
      await lane.register({ order: 'none', batch: 5 }, async (arrival) => {
        const range = rangeOf(arrival);
        // The answer to message 1 comes when the row of the batch is written.
        if (range === '1') await new Promise<void>((resolve) => (answer = resolve));
        const code = range === '1' ? status : (batches += 1) === 1 ? 500 : 200;
        if (code === 200) accepted.push(range);
        return code;
      });
      await lane.pause(true);
      await lane.post(1, 5);
      await postJson(`${lane.group.webhook}/reverse/${lane.hook}/redeliver`, { only: [`${lane.group.id}:1`] });
      await lane.pause(false);
      await lane.rowWhere(({ cursor }) => cursor === 5);
      expect(lane.receiver.arrivals.map(rangeOf).sort()).toEqual(['1', '1-5']);
      answer();
      await eventually(
        () => lane.retries(),
        (rows) => rows.length === 0,
      );
      expect(accepted.at(-1)).toBe('1-5');
    },
  );

  test('sends one by one what it repeats apart, when a batch is refused then', async () => {
    let answers = [500, 413];
    await lane.register({ order: 'none', batch: 4 }, (arrival) =>
      seqs(arrival).length > 1 ? (answers.shift() ?? 413) : 200,
    );
    await lane.pause(true);
    await lane.post(1, 4);
    await lane.pause(false);
    await lane.rowWhere(({ cursor }) => cursor === 4);
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    expect(lane.receiver.arrivals.map(rangeOf).sort()).toEqual(['1', '1-4', '1-4', '2', '3', '4']);
  });

  test('lets those that fail by themselves have their own times, though others are taken between them', async () => {
    await lane.stop();
    lane = await LaneFixture.start({ delivery: { retryDelaysMs: [3_600_000] } });
    await lane.register({ order: 'none' }, (arrival) => (seqs(arrival)[0]! <= 3 ? 500 : 200));
    await lane.post(1, 3);
    await lane.rowWhere(({ failures }) => failures === 3);
    for (let n = 4; n <= 12; n += 1) {
      await lane.post(n, n);
      await lane.rowWhere(({ cursor }) => cursor === n);
      // The success of message 4 makes the rows due, and the lane retries them before the next message.
      if (n === 4) await lane.receiver.received(7);
    }
    // The lane retried each message once when the target recovered, and not after every success.
    expect(arrived().filter((seq) => seq <= 3)).toHaveLength(6);
  });

  test('becomes strict when it is asked to, with nothing lost', async () => {
    let failing = true;
    await lane.register({ order: 'none' }, (arrival) => (failing && seqs(arrival)[0]! % 5 === 0 ? 500 : 200));
    await lane.post(1, 20);
    await lane.rowWhere(({ cursor }) => cursor === 20);
    await lane.change({ ordering: 'strict' });
    await lane.post(21, 24);
    await lane.rowWhere(({ cursor }) => cursor === 24);
    failing = false;
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    expect(new Set(arrived()).size).toBe(24);
  });

  test('becomes strict with nothing lost while a request hangs before one that failed', async () => {
    await lane.stop();
    lane = await LaneFixture.start({ delivery: { retryDelaysMs: [3_600_000] } });
    const held = Promise.withResolvers<number>();
    let failing = true;
    await lane.register({ order: 'none' }, (arrival) => {
      if (seqs(arrival)[0] === 1) return held.promise;
      return failing && seqs(arrival)[0] === 2 ? 500 : 200;
    });
    await lane.post(1, 3);
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 1,
    );
    expect((await lane.row())['cursor']).toBe(0);
    const changed = lane.patch({ order: 'strict' });
    await eventually(
      () => lane.row(),
      (row) => row['ordering'] === 'strict',
    );
    held.resolve(200);
    await changed;
    await lane.rowWhere(({ cursor }) => cursor === 3);
    expect(await lane.retries()).toEqual([2]);
    failing = false;
    // A change of the hook makes its retry rows due.
    await lane.pause(false);
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    expect(sorted(arrived())).toEqual([1, 2, 2, 3]);
  });

  test('that becomes strict has no message before its turn, and none twice', async () => {
    await lane.register({ order: 'none', paused: true });
    await lane.pause(true);
    await lane.post(1, 4);
    await lane.server.database.query(
      (sql) => sql`insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
        select (select conversation_id from reverse_hook where id = ${lane.hook}), ${lane.hook}, seq, seq, 1, now() + wait * interval '1 hour' from (values (2, 0), (4, 1)) as rows (seq, wait)`,
    );
    await lane.patch({ order: 'strict' });
    await lane.pause(false);
    await lane.rowWhere(({ cursor }) => cursor === 4);
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    expect(arrived()).toEqual([1, 2, 3, 4]);
  });
});
