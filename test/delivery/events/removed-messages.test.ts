import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { ALL_EVENTS, EventsFixture } from './events-fixture.ts';

let it: EventsFixture;
beforeEach(async () => {
  it = await EventsFixture.start();
});
afterEach(() => it.stop());

/** Removes messages as a retention rule does, before or after it has also deleted their rows. */
const removeBefore = (firstSeq: number, deletesRows: boolean): Promise<unknown> =>
  it.lane.server.database.query((sql) =>
    sql.begin(async (tx) => {
      const { id } = it.lane.group;
      await tx`update conversation_head set first_seq = ${firstSeq} where conversation_id = ${id}`;
      if (deletesRows) await tx`delete from message where conversation_id = ${id} and seq < ${firstSeq}`;
    }),
  );

describe.each(['strict', 'none'])('a hook with order %s', (order) => {
  test.each([
    ['still there', false],
    ['gone', true],
  ] as const)('passes over events of messages that were removed, whose rows are %s', async (_, deletesRows) => {
    await it.lane.register({ events: ALL_EVENTS, order });
    await it.lane.pause(true);
    const [first, second, third] = [await it.send('first'), await it.send('second'), await it.send('third')];
    await it.edit(first, 'goes');
    const kept = await it.edit(third, 'stays');
    // The deletion is the last event: if the skip of it moved no cursor, the sweep would find the hook for days.
    const last = await it.erase(second);
    await removeBefore(third, deletesRows);
    expect(await it.lane.health()).toMatchObject({ pending: 2 });
    await it.lane.pause(false);
    await it.lane.rowWhere((row) => row['cursor'] === third && row['event_cursor'] === last);
    expect([...it.arrived].sort()).toEqual([`${third}`, `${third} updated r${kept}`]);
    expect((await it.log()).sort()).toEqual([`${first} expired`, `${third} delivered`, `${third} r${kept} delivered`]);
    expect(await it.lane.health()).toMatchObject({ pending: 0, oldest_pending_at: null });
  });

  test('that repeats events of messages that were removed ends with that', async () => {
    await it.lane.register({ events: ALL_EVENTS, order });
    const [first, second] = [await it.send('first'), await it.send('second')];
    await it.lane.rowWhere((row) => row['cursor'] === second);
    it.lane.receiver.answer = () => 500;
    const gone = await it.edit(first, 'goes');
    const kept = await it.edit(second, 'stays');
    await it.lane.rowWhere(({ failures }) => Number(failures) > 0);
    await removeBefore(second, true);
    // The server may still send the removed message from its cache, for up to a second. The receiver refuses it.
    it.lane.receiver.answer = ({ body }) => (body.data.message.seq === first ? 500 : 200);
    // The hook's row may still have failures: its last retried message was removed, and not delivered.
    await it.lane.rowWhere((row) => row['event_cursor'] === kept);
    await eventually(
      () => it.lane.retries(),
      (retries) => retries.length === 0,
    );
    const log = await it.log();
    expect(log).toContain(`${second} r${kept} delivered`);
    expect(log).not.toContain(`${first} r${gone} delivered`);
    expect(log.filter((row) => row.endsWith('expired'))).toEqual([]);
  });
});
