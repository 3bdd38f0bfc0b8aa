import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId, ConversationId, HookId, Seq } from '../../../src/model/ids.ts';
import { lockGroup } from '../../../src/storage/groups/groups.ts';
import { applyHookChanges, lockHook } from '../../../src/storage/hooks/hook-control.ts';
import { lockHeadAndReadMessage, updateMessageText } from '../../../src/storage/messages/messages.ts';
import { holdOpen, isWaiting, until } from '../../storage/fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { callAs } from '../../support/call.ts';
import { signIn } from '../../support/people.ts';
import { postJson } from '../../support/server.ts';
import { joined } from '../../operations/conversation-calls.ts';
import { ALL_EVENTS, EventsFixture } from './events-fixture.ts';

let it: EventsFixture;
beforeEach(async () => {
  it = await EventsFixture.start();
});
afterEach(() => it.stop());

const settled = (cursor: number, eventCursor: number) =>
  it.lane.rowWhere((row) => row['cursor'] === cursor && row['event_cursor'] === eventCursor);
const wantsEvents = async (): Promise<boolean> => {
  const [row] = await it.lane.server.database.query(
    (sql) => sql`select wants_events from conversation_head where conversation_id = ${it.lane.group.id}`,
  );
  return row!['wants_events'] as boolean;
};

describe('asking for events', () => {
  test('is written where changes see it, by registration, change, removal and restoration', async () => {
    await it.lane.register();
    expect(await wantsEvents()).toBe(false);
    await it.lane.patch({ events: ['message.updated'] });
    expect(await wantsEvents()).toBe(true);
    await it.lane.patch({ events: [] });
    expect(await wantsEvents()).toBe(false);
    await it.lane.patch({ events: ALL_EVENTS });
    it.lane.receiver.answer = () => 410;
    await it.send('gone');
    await it.lane.rowWhere(({ removed_at: at }) => at !== null);
    expect(await wantsEvents()).toBe(false);
    it.lane.receiver.answer = () => 200;
    await it.lane.server.operate('hooks.restore', { hook: it.lane.hook });
    expect(await wantsEvents()).toBe(true);
    const url = `${it.lane.webhook}/reverse/${it.lane.hook}`;
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(202);
    expect(await wantsEvents()).toBe(false);
  });

  test('begins behind the newest change each time, and what comes before is not sent', async () => {
    await it.lane.register({ events: ALL_EVENTS });
    const seq = await it.send('text');
    const first = await it.edit(seq, 'first');
    await settled(seq, first);
    await it.lane.patch({ events: [] });
    expect(await it.lane.row()).toMatchObject({ event_cursor: null, event_start_rev: null });
    await it.edit(seq, 'nobody asks');
    // The server keeps the events as long as any hook of the group asks for them.
    const other = await postJson(`${it.lane.webhook}/reverse`, {
      url: it.lane.receiver.url('/other'),
      events: ['message.deleted'],
    });
    await it.edit(seq, 'only the other one asks');
    await it.lane.patch({ events: ALL_EVENTS });
    const last = await it.edit(seq, 'both ask');
    await settled(seq, last);
    const arrived = it.lane.receiver.arrivals.filter(({ path }) => path === '/hook').map(({ body }) => body.data.rev);
    expect(arrived).toEqual([undefined, first, last]);
    expect(other.status).toBe(201);
  });

  test('waits for an edit that is under way, and starts behind it', async () => {
    await it.lane.register();
    const seq = await it.send('text');
    const conversationId = it.lane.group.id as ConversationId;
    const { database } = it.lane.server;
    const held = await holdOpen(database.target, async (tx) => {
      await lockHeadAndReadMessage(tx, { conversationId, seq: seq as Seq, accountId: it.alice.id as AccountId });
      const change = { conversationId, seq: seq as Seq, actorId: it.alice.id as AccountId, hops: 0 };
      await updateMessageText(tx, change, 'edited meanwhile');
    });
    const asked = it.lane.patch({ events: ALL_EVENTS });
    await until(database, (sql) => isWaiting(sql, 'general'));
    await held.release();
    await asked;
    const [head] = await database.query(
      (sql) => sql`select last_rev from conversation_head where conversation_id = ${conversationId}`,
    );
    expect(await it.lane.row()).toMatchObject({ event_cursor: head!['last_rev'] });
    expect(await it.events()).toEqual([]);
  });

  test('under way makes an edit wait, which is told of', async () => {
    await it.lane.register();
    const seq = await it.send('text');
    await it.lane.rowWhere(({ cursor }) => cursor === seq);
    const conversationId = it.lane.group.id as ConversationId;
    const { database } = it.lane.server;
    const held = await holdOpen(database.target, async (tx) => {
      await lockGroup(tx, conversationId);
      const hook = (await lockHook(tx, { conversationId, hookId: it.lane.hook as HookId }))!;
      await applyHookChanges(tx, hook, { events: ['message.updated'] });
    });
    const edited = it.edit(seq, 'edited');
    await until(database, (sql) => isWaiting(sql, 'general'));
    await held.release();
    const rev = await edited;
    expect(await it.events()).toEqual([rev]);
    await it.lane.receiver.received(2);
    expect(it.arrived).toEqual([`${seq}`, `${seq} updated r${rev}`]);
  });

  test('is shown by operations, and refused for what there is not', async () => {
    await it.lane.register({ events: ['message.deleted', 'message.deleted'] });
    const [listed] = (await it.lane.server.operate<{ hooks: { events: string[] }[] }>('hooks.list-all')).hooks;
    expect(listed!.events).toEqual(['message.deleted']);
    const info = await it.lane.server.operate('hooks.info', { hook: it.lane.hook });
    expect(info).toMatchObject({ events: ['message.deleted'], event_cursor: expect.any(Number) });
    const refused = await postJson(`${it.lane.webhook}/reverse`, {
      url: it.lane.receiver.url('/other'),
      events: ['message.created'],
    });
    expect([refused.status, refused.body.message]).toEqual([
      400,
      'events.0: must be one of message.updated, message.deleted',
    ]);
  });

  test('passes over changes by a kind of sender that the hook skips', async () => {
    await it.lane.register({ events: ALL_EVENTS, skip: ['bot'] });
    const seq = await it.send('text');
    const { nick } = await callAs(it.lane.server, it.alice, 'bots.create', { nick: 'robot' });
    await it.lane.server.operate('groups.add-member', { group: it.lane.group.id, user: nick, role: 'admin' });
    const [bot] = await it.lane.server.database.query((sql) => sql`select id from account where nick = 'robot'`);
    const token = await signIn(it.lane.server, Number(bot!['id']), ['messages:write']);
    await callAs(it.lane.server, token, 'messages.edit', { conversation: it.lane.group.id, seq, text: 'by the bot' });
    const rev = await it.edit(seq, 'by alice');
    await settled(seq, rev);
    expect(it.arrived).toEqual([`${seq}`, `${seq} updated r${rev}`]);
  });

  test('tells who changed it, and whose message it is', async () => {
    await it.lane.register({ events: ALL_EVENTS });
    const owner = await joined(it.lane.server, 'olga', it.lane.group.id, 'owner');
    await postJson(it.lane.webhook, { text: 'from a webhook', username: 'Monitor' });
    const input = { conversation: it.lane.group.id, seq: 1, text: 'edited by the owner' };
    await callAs(it.lane.server, owner, 'messages.edit', input);
    const [created, update] = await it.lane.receiver.received(2);
    expect(created!.body.data.sender).toEqual({
      id: expect.any(Number),
      name: expect.any(String),
      nick: null,
      kind: 'webhook',
      label: 'Monitor',
    });
    expect(update!.body.data.sender).toEqual(created!.body.data.sender);
    expect(update!.body.data.actor).toEqual({ id: owner.id, name: 'olga', nick: 'olga', kind: 'user' });
  });
});

describe('sending again', () => {
  test('from a message on brings the events behind it too, and none before it', async () => {
    await it.lane.register({ events: ALL_EVENTS });
    const first = await it.send('first');
    const early = await it.edit(first, 'early');
    const second = await it.send('second');
    const late = await it.edit(first, 'late');
    const expected = [`${first}`, `${first} updated r${early}`, `${second}`, `${first} updated r${late}`];
    await settled(second, late);
    const from = `${it.lane.group.id}:${second}`;
    const answer = await postJson(`${it.lane.webhook}/reverse/${it.lane.hook}/redeliver`, { from });
    expect(answer.body).toMatchObject({ from, pending: 2 });
    await it.lane.receiver.received(6);
    expect(it.arrived).toEqual([...expected, ...expected.slice(2)]);
    await settled(second, late);
    const ids = it.lane.receiver.arrivals.map(({ headers }) => headers['webhook-id']);
    expect(ids.slice(4)).toEqual(ids.slice(2, 4));
  });

  test('from a time on brings the events since then, of older messages too', async () => {
    await it.lane.register({ events: ALL_EVENTS });
    const seq = await it.send('text');
    const old = await it.edit(seq, 'old');
    await settled(seq, old);
    const [clock] = await it.lane.server.database.query((sql) => sql<{ now: Date }[]>`select clock_timestamp() as now`);
    const rev = await it.edit(seq, 'new');
    await settled(seq, rev);
    const from = new Date(clock!.now.getTime() + 1).toISOString();
    const redeliver = `${it.lane.webhook}/reverse/${it.lane.hook}/redeliver`;
    expect((await postJson(redeliver, { from })).body).toMatchObject({ from: null, pending: 1 });
    await it.lane.receiver.received(4);
    expect(it.arrived.slice(3)).toEqual([`${seq} updated r${rev}`]);
    await settled(seq, rev);
    const again = await postJson(redeliver, { only: [`${it.lane.group.id}:${seq}`] });
    expect(again.body).toMatchObject({ pending: 1 });
    await it.lane.receiver.received(5);
    expect(it.arrived[4]).toBe(`${seq}`);
  });

  test('never brings an event from before the hook asked for any', async () => {
    await it.lane.register();
    const seq = await it.send('text');
    await postJson(`${it.lane.webhook}/reverse`, { url: it.lane.receiver.url('/other'), events: ALL_EVENTS });
    await it.edit(seq, 'before');
    await it.lane.patch({ events: ALL_EVENTS });
    const rev = await it.edit(seq, 'after');
    await settled(seq, rev);
    it.lane.receiver.arrivals.length = 0;
    await postJson(`${it.lane.webhook}/reverse/${it.lane.hook}/redeliver`, { from: `${it.lane.group.id}:1` });
    await it.lane.receiver.received(2);
    await settled(seq, rev);
    expect(it.arrived).toEqual([`${seq}`, `${seq} updated r${rev}`]);
  });

  test('of a discarded backlog nothing comes, and the log has a row for its messages and one for its events', async () => {
    await it.lane.register({ events: ALL_EVENTS });
    const first = await it.send('first');
    await it.lane.rowWhere(({ cursor }) => cursor === first);
    await it.lane.pause(true);
    const revs = [await it.edit(first, 'a'), await it.edit(first, 'b')];
    const second = await it.send('second');
    expect(await it.lane.health()).toMatchObject({ pending: 3, oldest_pending_at: expect.any(String) });
    const redeliver = `${it.lane.webhook}/reverse/${it.lane.hook}/redeliver`;
    expect((await postJson(redeliver, { discard_backlog: true })).body).toEqual({ status: 'Ok', skipped: 3 });
    expect(await it.lane.health()).toMatchObject({ pending: 0, oldest_pending_at: null });
    expect((await it.log()).slice(1).sort()).toEqual([`${second} skipped`, `r${revs[0]}-${revs[1]} skipped`].sort());
    await it.lane.pause(false);
    const last = await it.send('third');
    await it.lane.rowWhere(({ cursor }) => cursor === last);
    expect(it.arrived).toEqual([`${first}`, `${last}`]);
  });
});

test('the delivery log names events by their revs, page by page', async () => {
  await it.lane.register({ events: ALL_EVENTS });
  const seq = await it.send('text');
  const rev = await it.edit(seq, 'edited');
  await settled(seq, rev);
  // Attempts can have the same time; here all of them get the same.
  await it.lane.server.database.query((sql) => sql`update delivery_attempt set at = date_trunc('minute', at)`);
  const deliveries = `${it.lane.webhook}/reverse/${it.lane.hook}/deliveries?limit=1`;
  const [first] = (await (await fetch(deliveries)).json()) as Record<string, unknown>[];
  expect(first).toMatchObject({ message_id: `${it.lane.group.id}:${seq}`, seq, rev, outcome: 'delivered' });
  expect(first).not.toHaveProperty('last_rev');
  const info = await it.lane.server.operate<{ attempts: object[]; next: string }>('hooks.log', {
    hook: it.lane.hook,
    limit: 1,
  });
  expect(info.next).toMatch(new RegExp(`_${seq}_1_r${rev}$`));
  const page = { hook: it.lane.hook, limit: 1, before: info.next };
  const { attempts, next } = await it.lane.server.operate<{ attempts: object[]; next: null }>('hooks.log', page);
  expect([attempts.length, next]).toEqual([1, null]);
  expect(attempts[0]).not.toHaveProperty('rev');
});

test('an event whose word was lost is found by the sweep', async () => {
  await it.lane.register({ events: ALL_EVENTS });
  const seq = await it.send('text');
  await it.lane.rowWhere(({ cursor }) => cursor === seq);
  // Changes the message as the operation `messages.edit` does, but without its notification.
  await it.lane.server.database.query((sql) =>
    sql.begin(async (tx) => {
      const [head] = await tx`
        update conversation_head set last_rev = last_rev + 1 where conversation_id = ${it.lane.group.id}
        returning last_rev, last_seq`;
      await tx`
        insert into hook_event (conversation_id, rev, after_seq, seq, kind, actor_id, hops, at)
        values (${it.lane.group.id}, ${head!['last_rev']}, ${head!['last_seq']}, ${seq}, 'message.updated', ${it.alice.id},
          2, clock_timestamp())`;
    }),
  );
  const [, event] = await it.lane.receiver.received(2);
  expect(event!.headers['klatch-hops']).toBe('2');
  await eventually(
    () => it.lane.health(),
    ({ pending }) => pending === 0,
  );
});
