import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { ALL_EVENTS, EventsFixture } from './events-fixture.ts';

let it: EventsFixture;
beforeEach(async () => {
  it = await EventsFixture.start();
});
afterEach(() => it.stop());

const arrivals = (count: number) => it.lane.receiver.received(count);
const settled = (cursor: number, eventCursor: number) =>
  it.lane.rowWhere((row) => row['cursor'] === cursor && row['event_cursor'] === eventCursor);

describe('a strict hook that asks for events', () => {
  test('is told of an edit and a deletion, with the message as it is then', async () => {
    await it.lane.register({ events: ALL_EVENTS });
    const seq = await it.send('teh text');
    await arrivals(1);
    const edited = await it.edit(seq, 'the text');
    await arrivals(2);
    const deleted = await it.erase(seq);
    const [created, update, deletion] = await arrivals(3);
    const { group } = it.lane;
    const message = { id: `${group.id}:${seq}`, seq, sent_at: expect.any(String), attachments: [] };
    const sender = { id: it.alice.id, name: 'alice', nick: 'alice', kind: 'user' };
    const common = { group: { id: group.id, title: 'Lobby' }, sender };
    expect(created!.body).toEqual({
      type: 'message.created',
      timestamp: created!.body.data.message.sent_at,
      data: { ...common, message: { ...message, rev: edited - 1, text: 'teh text' } },
    });
    expect(update!.body).toEqual({
      type: 'message.updated',
      timestamp: update!.body.data.message.edited_at,
      data: {
        ...common,
        rev: edited,
        message: { ...message, rev: edited, text: 'the text', edited_at: expect.any(String) },
        actor: sender,
      },
    });
    expect(deletion!.body).toEqual({
      type: 'message.deleted',
      timestamp: expect.stringMatching(/Z$/),
      data: {
        ...common,
        rev: deleted,
        message: { ...message, rev: deleted, text: '', deleted: true, edited_at: expect.any(String) },
        actor: sender,
      },
    });
    const id = (part: string) => `${it.lane.hook}_${group.id}_${part}`;
    expect([created, update, deletion].map((each) => each!.headers['webhook-id'])).toEqual([
      id(`${seq}`),
      id(`r${edited}`),
      id(`r${deleted}`),
    ]);
    expect(update!.headers['klatch-hops']).toBe('0');
    await settled(seq, deleted);
    expect(await it.log()).toEqual([`${seq} delivered`, `${seq} r${edited} delivered`, `${seq} r${deleted} delivered`]);
  });

  test('gets them between the messages where they happened, however long it was away', async () => {
    await it.lane.register({ events: ALL_EVENTS });
    await it.lane.pause(true);
    const expected: string[] = [];
    let newest = 0;
    for (let n = 0; n < 40; n += 1) {
      newest = await it.send(`message ${n}`);
      expected.push(`${newest}`);
      if (n % 3 === 1) expected.push(`${newest} updated r${await it.edit(newest, `message ${n}, edited`)}`);
      if (n % 3 === 2) {
        expected.push(`${newest - 1} updated r${await it.edit(newest - 1, `again ${n}`)}`);
        expected.push(`${newest} deleted r${await it.erase(newest)}`);
      }
    }
    await it.lane.pause(false);
    await arrivals(expected.length);
    expect(it.arrived).toEqual(expected);
  });

  test('gets each message of a busy group in its place while it is posted', async () => {
    await it.lane.register({ events: ALL_EVENTS });
    const expected: string[] = [];
    for (let n = 0; n < 25; n += 1) {
      const seq = await it.send(`message ${n}`);
      const rev = await it.edit(seq, `message ${n}, edited`);
      expected.push(`${seq}`, `${seq} updated r${rev}`);
    }
    await arrivals(expected.length);
    expect(it.arrived).toEqual(expected);
  });

  test('is told at once, and waits for no sweep', async () => {
    await it.lane.register({ events: ALL_EVENTS });
    const seq = await it.send('text');
    await arrivals(1);
    // This event is made older than a minute. Of partitions that a node has held before, sweeps read only events of the
    // last minute.
    await it.lane.server.database.query((sql) =>
      sql.unsafe(`
        create function make_old() returns trigger language plpgsql as $$ begin
          new.at := new.at - interval '1 hour'; return new; end $$;
        create trigger make_old before insert on hook_event for each row execute function make_old()`),
    );
    const rev = await it.edit(seq, 'edited');
    await arrivals(2);
    expect(it.arrived).toEqual([`${seq}`, `${seq} updated r${rev}`]);
  });

  test('is not told of what it did not ask for', async () => {
    await it.lane.register({ events: ['message.deleted'] });
    const seq = await it.send('text');
    await it.edit(seq, 'edited');
    const deleted = await it.erase(seq);
    await arrivals(2);
    await settled(seq, deleted);
    expect(it.arrived).toEqual([`${seq}`, `${seq} deleted r${deleted}`]);
  });

  test('is told of no change of a message that is older than the hook', async () => {
    const old = await it.send('before');
    await it.lane.register({ events: ALL_EVENTS });
    await it.edit(old, 'before, edited');
    const seq = await it.send('after');
    const rev = await it.edit(seq, 'after, edited');
    await arrivals(2);
    await settled(seq, rev);
    expect(it.arrived).toEqual([`${seq}`, `${seq} updated r${rev}`]);
  });

  test('that fails at an event keeps what is behind it waiting, and repeats it under its id', async () => {
    let failing = true;
    await it.lane.register({ events: ALL_EVENTS }, ({ body }) =>
      failing && body.type !== 'message.created' ? 500 : 200,
    );
    const first = await it.send('first');
    await arrivals(1);
    const rev = await it.edit(first, 'first, edited');
    await it.lane.rowWhere(({ failures }) => failures > 1);
    const second = await it.send('second');
    await it.edit(first, 'once more');
    const before = it.lane.receiver.arrivals.length;
    await arrivals(before + 2);
    expect(new Set(it.arrived.slice(1))).toEqual(new Set([`${first} updated r${rev}`]));
    expect(await it.lane.health()).toMatchObject({ state: 'failing', pending: 3 });
    // An attempt sends the current text, or a cached one that is up to a second older.
    await eventually(
      async () => it.lane.receiver.arrivals.at(-1)!.body.data.message.text as string,
      (text) => text === 'once more',
    );
    failing = false;
    await it.lane.rowWhere(({ cursor, failures }) => cursor === second && failures === 0);
    await eventually(
      () => it.lane.health(),
      ({ pending }) => pending === 0,
    );
    expect(it.arrived.slice(-3)).toEqual([
      `${first} updated r${rev}`,
      `${second}`,
      expect.stringMatching(`^${first} updated r`),
    ]);
    const ids = it.lane.receiver.arrivals.filter((each) => each.body.data.rev === rev).map((each) => each.headers);
    expect(new Set(ids.map((headers) => headers['webhook-id'])).size).toBe(1);
    // The event has the rev of its change, and the message has the rev of its text.
    const last = it.lane.receiver.arrivals.findLast((each) => each.body.data.rev === rev)!;
    expect(last.body.data.message).toMatchObject({ text: 'once more' });
    expect(last.body.data.message.rev).toBeGreaterThan(rev);
  });

  test('has an event set aside that it refuses, when it accepts what is behind it', async () => {
    let refused = 0;
    await it.lane.register({ events: ALL_EVENTS }, ({ body }) => (body.data.rev === refused ? 422 : 200));
    const seq = await it.send('text');
    await arrivals(1);
    await it.lane.pause(true);
    refused = await it.edit(seq, 'refused');
    const next = await it.send('next');
    const rev = await it.edit(next, 'accepted');
    await it.lane.pause(false);
    await settled(next, rev);
    const log = await it.log();
    expect(log.filter((each) => each === `${seq} r${refused} failed`)).toHaveLength(5);
    expect(log).toContain(`${seq} r${refused} dead_lettered`);
    expect(it.arrived.slice(-2)).toEqual([`${next}`, `${next} updated r${rev}`]);
  });

  test('gets events in batches of their own, which are repeated as they were', async () => {
    let failing = true;
    await it.lane.register({ events: ALL_EVENTS, batch: 10 }, ({ body }) =>
      failing && body[0].type !== 'message.created' ? 500 : 200,
    );
    await it.lane.pause(true);
    const seq = await it.send('text');
    await it.send('more');
    const revs = [await it.edit(seq, 'a'), await it.edit(seq, 'b'), await it.edit(seq, 'c')];
    const third = await it.send('behind them');
    await it.lane.pause(false);
    await it.lane.rowWhere((row) => row['batch_last_rev'] === revs[2]);
    await it.edit(seq, 'd');
    failing = false;
    await it.lane.rowWhere(({ cursor }) => cursor === third);
    await arrivals(it.lane.receiver.arrivals.length);
    const batch = revs.map((rev) => `${seq} updated r${rev}`).join('+');
    const arrived = it.arrived.filter((each, n, all) => each !== all[n - 1]);
    expect(arrived.slice(-3).join(' | ')).toContain(batch);
    expect(arrived.join(' | ')).toContain(`${batch} | ${third}`);
    const ids = it.lane.receiver.arrivals.filter((each) => each.body[0].type !== 'message.created');
    expect(ids[0]!.headers['webhook-id']).toBe(`${it.lane.hook}_${it.lane.group.id}_r${revs[0]}-${revs[2]}`);
  });
});

test('a hook that does not ask gets messages alone, and nothing is written for it', async () => {
  await it.lane.register();
  const seq = await it.send('text');
  await arrivals(1);
  await it.edit(seq, 'edited');
  await it.erase(seq);
  const last = await it.send('last');
  await it.lane.rowWhere(({ cursor }) => cursor === last);
  expect(it.arrived).toEqual([`${seq}`, `${last}`]);
  expect(await it.events()).toEqual([]);
  expect(await it.lane.row()).toMatchObject({ events: expect.anything(), event_cursor: null, event_start_rev: null });
});
