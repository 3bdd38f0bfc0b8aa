import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { postJson } from '../support/server.ts';
import { LaneFixture, rangeOf, seqs, upTo } from './fixtures/lane-fixture.ts';

let lane: LaneFixture;
beforeEach(async () => {
  lane = await LaneFixture.start();
});
afterEach(() => lane.stop());

const ranges = (): string[] => lane.receiver.arrivals.map(rangeOf);
const arrived = (): number[] => lane.receiver.arrivals.flatMap(seqs);

/** Posts messages while the hook is paused, so that they wait when it begins to send. */
async function backlog(count: number, options: object): Promise<void> {
  await lane.register(options);
  await lane.pause(true);
  await lane.post(1, count);
}
const begin = (): Promise<void> => lane.pause(false);

describe('a hook with batch', () => {
  test('gets arrays in order, as long as asked for, named by their first and last seq', async () => {
    await backlog(23, { batch: 10 });
    await begin();
    await lane.receiver.received(3);
    expect(ranges()).toEqual(['1-10', '11-20', '21-23']);
    expect(arrived()).toEqual(upTo(23));
    await lane.rowWhere((row) => row['cursor'] === 23);
    expect(await lane.log()).toEqual(['1-10 delivered', '11-20 delivered', '21-23 delivered']);
  });

  test('gets an array of one when no more is there, and its hops are those of the message', async () => {
    await lane.register({ batch: 10 });
    await lane.post(1, 1);
    const [arrival] = await lane.receiver.received(1);
    expect(rangeOf(arrival!)).toBe('1');
    expect(arrival!.body).toHaveLength(1);
    expect(arrival!.headers['klatch-hops']).toBe('0');
  });

  test('gets the highest hops of its messages, wherever that one stands', async () => {
    await backlog(1, { batch: 10 });
    for (const hops of ['2', '0']) await postJson(lane.group.webhook, { text: 'on its way' }, { 'klatch-hops': hops });
    await begin();
    const [arrival] = await lane.receiver.received(1);
    expect([rangeOf(arrival!), arrival!.headers['klatch-hops']]).toEqual(['1-3', '3']);
  });

  test('gets a range that failed again as it was, though more has come meanwhile', async () => {
    lane.receiver.answer = () => 500;
    await backlog(3, { batch: 10 });
    await begin();
    await lane.receiver.received(2);
    await lane.post(4, 8);
    lane.receiver.answer = () => 200;
    await lane.rowWhere((row) => row['cursor'] === 8);
    const seen = ranges();
    const outage = seen.indexOf('4');
    expect(outage).toBeGreaterThan(2);
    expect(new Set(seen.slice(0, outage))).toEqual(new Set(['1-3']));
    // The first request after an outage has one message.
    expect(seen.slice(outage, outage + 2)).toEqual(['4', '5-6']);
    const [first, second] = lane.receiver.arrivals;
    expect(second!.raw).toBe(first!.raw);
  });

  test('keeps the range over a restart of its lane', async () => {
    lane.receiver.answer = () => 500;
    await backlog(3, { batch: 10 });
    await begin();
    await lane.rowWhere((row) => row['batch_last_seq'] === 3);
    await lane.post(4, 5);
    lane.receiver.answer = () => 200;
    // The change raises the hook's generation, so the lane starts again from the hook's row.
    await lane.change({ description: 'changed', next_attempt_at: null });
    await lane.rowWhere((row) => row['cursor'] === 5);
    const seen = ranges();
    expect(new Set(seen.slice(0, seen.indexOf('4')))).toEqual(new Set(['1-3']));
  });

  test('keeps the range of a batch that was on its way when the hook was changed, and failed', async () => {
    let fail = (): void => {};
    lane.receiver.answer = () => new Promise((resolve) => (fail = () => resolve(500)));
    await backlog(3, { batch: 10 });
    await begin();
    await lane.receiver.received(1);
    await lane.pause(true);
    await lane.post(4, 5);
    lane.receiver.answer = () => 200;
    fail();
    await lane.rowWhere((row) => row['last_error_code'] === 500);
    await begin();
    await lane.rowWhere((row) => row['cursor'] === 5);
    expect(ranges()).toEqual(['1-3', '1-3', '4-5']);
  });

  test.each([400, 413, 422])('gets a batch that it refused with %i one by one', async (status) => {
    lane.receiver.answer = (arrival) => (seqs(arrival).length > 1 ? status : 200);
    await backlog(4, { batch: 4 });
    await begin();
    await lane.receiver.received(5);
    expect(ranges()).toEqual(['1-4', '1', '2', '3', '4']);
    for (const arrival of lane.receiver.arrivals) expect(Array.isArray(arrival.body)).toBe(true);
    const row = await lane.rowWhere(({ cursor }) => cursor === 4);
    expect(row).toMatchObject({ unbatched_until: null, batch_last_seq: null, failures: 0, last_error_code: status });
  });

  test('has no body beyond the bound', async () => {
    await lane.register({ batch: 100 });
    await lane.pause(true);
    const long = 'x'.repeat(39_000);
    for (let n = 0; n < 60; n += 1) await fetch(lane.group.webhook, { method: 'POST', body: long });
    await begin();
    await lane.rowWhere((row) => row['cursor'] === 60);
    for (const { raw } of lane.receiver.arrivals) expect(Buffer.byteLength(raw)).toBeLessThanOrEqual(1024 * 1024);
    expect(arrived()).toEqual(upTo(60));
    expect(lane.receiver.arrivals.length).toBe(3);
  });

  test('leaves out what it does not want, within a batch too', async () => {
    await backlog(3, { batch: 10, skip: ['webhook'] });
    await begin();
    await lane.rowWhere((row) => row['cursor'] === 3);
    expect(lane.receiver.arrivals).toEqual([]);
    expect(await lane.log()).toEqual([]);
  });
});
