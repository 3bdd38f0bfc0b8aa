import { afterEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { LaneFixture, rangeOf, seqs } from './fixtures/lane-fixture.ts';

let lane: LaneFixture;
afterEach(() => lane.stop());

describe('a lane after an outage', () => {
  test('begins with one message and doubles', async () => {
    lane = await LaneFixture.start();
    let down = true;
    await lane.register({ batch: 20 }, () => (down ? 503 : 200));
    await lane.post(1, 1);
    await lane.rowWhere(({ failures }) => failures >= 3);
    await lane.post(2, 60);
    down = false;
    await lane.rowWhere(({ cursor }) => cursor === 60);
    const delivered = lane.receiver.arrivals.map(rangeOf).filter((range) => range !== '1');
    expect(delivered).toEqual(['2', '3-4', '5-8', '9-16', '17-32', '33-52', '53-60']);
  });

  test('rests between single messages at first, and less each time', async () => {
    lane = await LaneFixture.start();
    let down = true;
    const at: number[] = [];
    await lane.register({}, () => {
      if (!down) at.push(performance.now());
      return down ? 503 : 200;
    });
    await lane.post(1, 12);
    await lane.rowWhere(({ failures }) => failures >= 3);
    down = false;
    await lane.rowWhere(({ cursor }) => cursor === 12);
    // The pauses between attempts are at least as long as intended.
    expect(at[1]! - at[0]!).toBeGreaterThan(250);
    expect(at[2]! - at[1]!).toBeGreaterThan(120);
    const all = lane.receiver.arrivals.flatMap(seqs);
    expect(all.filter((seq, n) => seq !== all[n - 1])).toEqual(Array.from({ length: 12 }, (_, n) => n + 1));
  });

  test('is not slowed by a single failure', async () => {
    lane = await LaneFixture.start();
    let failures = 1;
    await lane.register({ batch: 20 }, () => (failures-- > 0 ? 503 : 200));
    await lane.post(1, 1);
    await lane.rowWhere(({ cursor }) => cursor === 1);
    await lane.pause(true);
    await lane.post(2, 21);
    await lane.pause(false);
    await lane.rowWhere(({ cursor }) => cursor === 21);
    expect(lane.receiver.arrivals.map(rangeOf).at(-1)).toBe('2-21');
  });
});

describe('a hook that has failed for so long that it is parked', () => {
  const notices = async (): Promise<string[]> => {
    const rows = await lane.server.database.query((sql) => sql`select kind from notice where kind = 'hook_parked'`);
    return rows.map((row) => String(row['kind']));
  };

  test('tells its group once, is tried on, and drops nothing', async () => {
    lane = await LaneFixture.start({ delivery: { parkAfterMs: 200 } });
    let down = true;
    await lane.register({}, () => (down ? 503 : 200));
    await lane.post(1, 3);
    await eventually(notices, (kinds) => kinds.length === 1);
    expect(await lane.health()).toMatchObject({ state: 'parked', pending: 3 });
    const { failures } = await lane.row();
    await lane.rowWhere((row) => row['failures'] > failures + 5);
    expect(await notices()).toEqual(['hook_parked']);
    expect((await lane.row())['parked_at']).not.toBeNull();
    down = false;
    await lane.rowWhere((row) => row['cursor'] === 3 && row['parked_at'] === null);
    expect(await lane.health()).toMatchObject({ state: 'active', pending: 0 });
    // The next outage is logged as a new one.
    down = true;
    await lane.post(4, 4);
    await eventually(notices, (kinds) => kinds.length === 2);
  });
});
