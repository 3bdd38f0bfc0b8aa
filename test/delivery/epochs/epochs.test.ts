import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { raiseLogEpoch } from '../../../src/storage/messages/log-epoch.ts';
import { eventually } from '../../support/eventually.ts';
import { postJson } from '../../support/server.ts';
import { ALL_EVENTS, EventsFixture } from '../events/events-fixture.ts';
import { rangeOf, type LaneFixture } from '../fixtures/lane-fixture.ts';

let it: EventsFixture;
let lane: LaneFixture;
beforeEach(async () => {
  it = await EventsFixture.start();
  ({ lane } = it);
});
afterEach(() => it.stop());

const raise = (): Promise<number> => lane.server.database.query((sql) => raiseLogEpoch(sql));
const ranges = (): string[] => lane.receiver.arrivals.map(rangeOf);
const redeliver = (body: object) => postJson(`${lane.webhook}/reverse/${lane.hook}/redeliver`, body);

describe('messages of two epochs', () => {
  test('are named by their epochs, from the answer to the post to what arrives', async () => {
    await lane.register();
    expect((await postJson(lane.webhook, { text: 'before' })).body.id).toBe(`${lane.group.id}:1`);
    const epoch = await raise();
    expect((await postJson(lane.webhook, { text: 'after' })).body.id).toBe(`${lane.group.id}:2.${epoch}`);
    const [before, after] = await lane.receiver.received(2);
    expect(ranges()).toEqual(['1', `2.${epoch}`]);
    expect(before!.body.data.message).not.toHaveProperty('epoch');
    expect(after!.body.data.message).toMatchObject({
      id: `${lane.group.id}:2.${epoch}`,
      seq: 2,
      epoch,
      rev_epoch: epoch,
    });
  });

  test.each([
    ['strict', 10],
    ['none', 10],
  ])('never share a request, with order %s', async (order, batch) => {
    await lane.register({ order, batch });
    await lane.pause(true);
    await lane.post(1, 3);
    const epoch = await raise();
    await lane.post(4, 6);
    await lane.pause(false);
    await lane.receiver.received(2);
    expect(ranges().toSorted()).toEqual(['1-3', `4-6.${epoch}`]);
    await lane.rowWhere((row) => row['cursor'] === 6);
  });

  test('come again under the ids that they had, when asked for by ids of their epochs', async () => {
    await lane.register();
    await lane.post(1, 2);
    const epoch = await raise();
    await lane.post(3, 4);
    await lane.receiver.received(4);
    await lane.rowWhere((row) => row['cursor'] === 4);
    const { id } = lane.group;
    expect(await redeliver({ only: [`${id}:1`, `${id}:3.${epoch}`] })).toMatchObject({ status: 202 });
    await lane.receiver.received(6);
    expect(ranges().slice(4).toSorted()).toEqual(['1', `3.${epoch}`]);
    // Waits until the deliveries are settled: the redelivery below would send an unsettled message once more.
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    expect(await redeliver({ from: `${id}:4.${epoch}` })).toMatchObject({
      status: 202,
      body: { from: `${id}:4.${epoch}` },
    });
    await lane.receiver.received(7);
    expect(ranges().at(-1)).toBe(`4.${epoch}`);
    await lane.rowWhere((row) => row['cursor'] === 4);
    const log = (await (await fetch(`${lane.webhook}/reverse/${lane.hook}/deliveries?limit=1`)).json()) as object[];
    expect(log).toMatchObject([{ message_id: `${id}:4.${epoch}`, seq: 4 }]);
  });

  test('are not taken for each other: the id of a lost message is refused', async () => {
    await lane.register();
    await lane.post(1, 1);
    const epoch = await raise();
    await lane.post(2, 2);
    await lane.receiver.received(2);
    const { id } = lane.group;
    for (const [wrong, body] of [
      [`${id}:2`, { from: `${id}:2` }],
      [`${id}:1.${epoch}`, { only: [`${id}:1.${epoch}`] }],
    ] as const)
      expect(await redeliver(body)).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining(`${wrong} is not the id of a message of this group`) },
      });
  });

  test('keep their own epoch when they are edited in a later one, and tell of which the edit is', async () => {
    const seq = await it.send('before');
    await lane.register({ events: ALL_EVENTS, batch: 10 });
    await lane.pause(true);
    const later = await it.send('behind the registration');
    await it.edit(later, 'edited before');
    const epoch = await raise();
    const rev = await it.edit(later, 'edited after');
    await it.edit(seq, 'older than the hook');
    await lane.pause(false);
    const [created, first, second] = await lane.receiver.received(3);
    expect(created!.body[0].data.message).toMatchObject({ id: `${lane.group.id}:${later}`, rev, rev_epoch: epoch });
    expect(created!.body[0].data.message).not.toHaveProperty('epoch');
    expect(ranges()).toEqual([`${later}`, `r${rev - 1}`, `r${rev}.${epoch}`]);
    expect(first!.body[0].data).not.toHaveProperty('epoch');
    expect(second!.body[0].data).toMatchObject({
      rev,
      epoch,
      message: { rev, rev_epoch: epoch, text: 'edited after' },
    });
  });
});
