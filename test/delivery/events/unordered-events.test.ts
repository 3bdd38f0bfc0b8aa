import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { ALL_EVENTS, deliveriesOf, EventsFixture } from './events-fixture.ts';

let it: EventsFixture;
beforeEach(async () => {
  it = await EventsFixture.start();
});
afterEach(() => it.stop());

/** Waits until both cursors have these values and no retry row is left: everything is delivered. */
const served = (cursor: number, eventCursor: number) =>
  eventually(
    async () => ({ row: await it.lane.row(), retries: await it.retries() }),
    ({ row, retries }) => row['cursor'] === cursor && row['event_cursor'] === eventCursor && retries.length === 0,
  );

const revsArrived = (): number[] =>
  it.lane.receiver.arrivals
    .flatMap(deliveriesOf)
    .filter(({ type }) => type !== 'message.created')
    .map(({ data }) => data.rev as number);

/** Posts `count` messages and edits them. Resolves with the revs of the edits and the last seq. */
async function postAndEdit(count: number): Promise<{ revs: number[]; last: number }> {
  const revs: number[] = [];
  let last = 0;
  for (let n = 0; n < count; n += 1) {
    last = await it.send(`message ${n}`);
    revs.push(await it.edit(last, `message ${n}, edited`));
  }
  return { revs, last };
}

describe('a hook with order "none" that asks for events', () => {
  test('gets every message and every event once, and both cursors come to their ends', async () => {
    await it.lane.register({ order: 'none', events: ALL_EVENTS });
    const { revs, last } = await postAndEdit(30);
    await served(last, revs.at(-1)!);
    expect(revsArrived().sort((a, b) => a - b)).toEqual(revs);
    expect(it.lane.receiver.arrivals).toHaveLength(60);
  });

  test('repeats an event that fails apart, which holds back neither messages nor other events', async () => {
    let failing = 0;
    await it.lane.register({ order: 'none', events: ALL_EVENTS }, ({ body }) =>
      body.data.rev === failing ? 500 : 200,
    );
    const first = await it.send('first');
    await it.lane.rowWhere(({ cursor }) => cursor === first);
    await it.lane.pause(true);
    failing = await it.edit(first, 'fails');
    const { revs, last } = await postAndEdit(5);
    await it.lane.pause(false);
    const row = await it.lane.rowWhere((each) => each['cursor'] === last && each['event_cursor'] === revs.at(-1));
    expect(row['failures']).toBeLessThan(20);
    expect(await it.retries()).toEqual([`r${failing}`]);
    expect(await it.lane.health()).toMatchObject({ pending: 1, oldest_pending_at: expect.any(String) });
    const rev = failing;
    failing = 0;
    await served(last, revs.at(-1)!);
    const ids = it.lane.receiver.arrivals.filter(({ body }) => body.data.rev === rev).map(({ headers }) => headers);
    expect(ids.length).toBeGreaterThan(1);
    expect(new Set(ids.map((headers) => headers['webhook-id']))).toEqual(
      new Set([`${it.lane.hook}_${it.lane.group.id}_r${rev}`]),
    );
    expect(await it.lane.health()).toMatchObject({ state: 'active', pending: 0 });
  });

  test('gets the events of a batch that was refused one by one', async () => {
    let refused = 0;
    const hasRefused = (body: { data: { rev?: number } }[]): boolean => body.some(({ data }) => data.rev === refused);
    await it.lane.register({ order: 'none', batch: 10, events: ALL_EVENTS }, ({ body }) =>
      hasRefused(body) ? 422 : 200,
    );
    const seq = await it.send('text');
    await it.lane.rowWhere(({ cursor }) => cursor === seq);
    await it.lane.pause(true);
    const before = await it.edit(seq, 'before');
    refused = await it.edit(seq, 'refused');
    const after = await it.edit(seq, 'after');
    await it.lane.pause(false);
    await eventually(
      () => it.retries(),
      (rows) => rows.length === 1 && rows[0] === `r${refused}`,
    );
    expect(revsArrived().filter((rev) => rev !== refused)).toEqual(expect.arrayContaining([before, after]));
    refused = 0;
    await served(seq, after);
  });

  test('goes on with what was on its way and what is repeated after a restart, and loses nothing', async () => {
    let failing = true;
    await it.lane.register({ order: 'none', events: ALL_EVENTS }, () => (failing ? 503 : 200));
    const { revs, last } = await postAndEdit(8);
    await it.lane.rowWhere(({ failures }) => failures > 3);
    failing = false;
    await it.lane.server.restart();
    await served(last, revs.at(-1)!);
    const delivered = (await it.log()).filter((row) => row.endsWith('delivered')).map((row) => row.split(' ')[1]);
    expect(delivered).toEqual(expect.arrayContaining(revs.map((rev) => `r${rev}`)));
  });

  test('that asks for order gets what failed in its place again', async () => {
    let failing = true;
    await it.lane.register({ order: 'none', events: ALL_EVENTS }, ({ body }) =>
      failing && body.type !== 'message.created' ? 503 : 200,
    );
    const seq = await it.send('text');
    const rev = await it.edit(seq, 'edited');
    await eventually(
      () => it.retries(),
      (rows) => rows.length === 1,
    );
    await it.lane.patch({ order: 'strict' });
    failing = false;
    await served(seq, rev);
  });
});
