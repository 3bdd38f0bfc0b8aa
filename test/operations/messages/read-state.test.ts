import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { EphemeralEvent } from '../../../src/bus/bus.ts';
import { PostgresBus } from '../../../src/bus/postgres-bus.ts';
import { silentLog } from '../../../src/log.ts';
import type { Database } from '../../../src/storage/database.ts';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestPerson } from '../../support/people.ts';
import { postJson, TestServer, type TestGroup } from '../../support/server.ts';
import { block, joined, privateOf, send, withScopes } from '../conversation-calls.ts';

let server: TestServer;
let group: TestGroup;
let alice: TestPerson;
let bob: TestPerson;
let database: Database;
let bus: PostgresBus;
const signals: EphemeralEvent[] = [];
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup('Operations');
  alice = await joined(server, 'alice', group.id);
  bob = await joined(server, 'bob', group.id);
  // This bus acts as another node, which receives the notifications of the server.
  database = server.database.open();
  bus = new PostgresBus(database, silentLog(), { node: 'listener' });
  const listens = new Promise<void>((resolve) => void bus.subscribe({ resync: () => resolve() }));
  bus.subscribe({ ephemeral: (signal) => signals.push(signal) });
  bus.start();
  await listens;
});
afterAll(async () => {
  bus.stop();
  await server.stop();
});

const read = (person: TestPerson, seq: number, conversation = group.id): Promise<{ read_seq: number }> =>
  callAs(server, person, 'messages.mark-read', { conversation, seq });
const type = (person: TestPerson, conversation = group.id): Promise<{ told: boolean }> =>
  callAs(server, person, 'messages.typing', { conversation });

describe('messages.mark-read', () => {
  test("moves forward only, not past the newest message, and tells the account's devices when it moved", async () => {
    for (let i = 0; i < 5; i += 1) await postJson(group.webhook, { text: `${i}` });
    expect(await read(alice, 3)).toEqual({ read_seq: 3 });
    expect(await read(alice, 3)).toEqual({ read_seq: 3 });
    expect(await read(alice, 1)).toEqual({ read_seq: 3 });
    expect(await read(alice, 1_000)).toEqual({ read_seq: 5 });
    const place = { kind: 'read', conversationId: group.id, accountId: alice.id };
    const heard = await eventually(
      () => Promise.resolve(signals.filter(({ accountId }) => accountId === alice.id)),
      (found) => found.length >= 2,
    );
    expect(heard).toEqual([
      { ...place, seq: 3 },
      { ...place, seq: 5 },
    ]);
  });

  test('of several devices at once ends with the furthest', async () => {
    const positions = await Promise.all([1, 5, 2, 4, 3].map((seq) => read(bob, seq)));
    expect(Math.max(...positions.map((position) => position.read_seq))).toBe(5);
    expect(await read(bob, 1)).toEqual({ read_seq: 5 });
  });

  test('is a message of their own for those who write', async () => {
    const { seq } = await send(server, alice, group.id, 'hello');
    expect(await read(alice, 1)).toEqual({ read_seq: seq });
  });

  test.each([0, -1, 1.5, '7', null])('refuses %j', async (seq) => {
    await expect(read(alice, seq as number)).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('is refused to former members and to bots that may only read', async () => {
    const eve = await joined(server, 'eve', group.id);
    const bot = await withScopes(server, alice, ['messages:read']);
    await server.operate('groups.remove-member', { group: group.id, user: 'eve' });
    await expect(read(eve, 1)).rejects.toMatchObject({ code: 'not_found' });
    await expect(type(eve)).rejects.toMatchObject({ code: 'not_found' });
    await expect(read(bot, 1)).rejects.toMatchObject({ code: 'missing_scope' });
    await expect(type(bot)).rejects.toMatchObject({ code: 'missing_scope' });
  });
});

describe('messages.typing', () => {
  test('is told to the other nodes, and not more than about once a second', async () => {
    const carol = await joined(server, 'carol', group.id);
    const answers = await Promise.all(Array.from({ length: 10 }, () => type(carol)));
    expect(answers.filter(({ told }) => told).length).toBe(1);
    const heard = await eventually(
      () => Promise.resolve(signals.filter(({ accountId }) => accountId === carol.id)),
      (found) => found.length > 0,
    );
    expect(heard).toEqual([{ kind: 'typing', conversationId: group.id, accountId: carol.id }]);
  });

  test('is refused in an archived group, and to who is blocked in a private conversation', async () => {
    const dora = await joined(server, 'dora', group.id);
    const id = await privateOf(server, alice, dora);
    await block(server, alice, dora);
    await expect(type(dora, id)).rejects.toMatchObject({ code: 'blocked' });
    const closed = await server.createGroup('Closed');
    await server.operate('groups.add-member', { group: closed.id, user: 'dora' });
    await server.operate('groups.archive', { group: closed.id });
    await expect(type(dora, closed.id)).rejects.toMatchObject({ code: 'group_archived' });
  });
});

describe('the unread numbers of a conversation', () => {
  const mine = (person: TestPerson): Promise<{ unread: number; unread_mentions: number; read_seq: number }> =>
    callAs(server, person, 'conversations.show', { conversation: group.id });

  test('count what is behind the position, with its mentions, which go with an edit or a deletion', async () => {
    const hugo = await joined(server, 'hugo', group.id);
    const { last_seq: last } = await callAs(server, hugo, 'conversations.show', { conversation: group.id });
    await read(hugo, last);
    const first = await send(server, alice, group.id, 'hello @hugo');
    await send(server, alice, group.id, 'hello all');
    const second = await send(server, bob, group.id, 'and @HUGO again');
    await send(server, alice, group.id, 'mail to x@hugo');
    const noted = await eventually(
      () => mine(hugo),
      ({ unread_mentions: mentions }) => mentions === 2,
    );
    expect(noted).toMatchObject({ unread: 4, read_seq: last });
    await read(hugo, first.seq);
    expect(await mine(hugo)).toMatchObject({ unread: 3, unread_mentions: 1 });
    await callAs(server, bob, 'messages.delete', { conversation: group.id, seq: second.seq });
    expect(await mine(hugo)).toMatchObject({ unread: 3, unread_mentions: 0 });
    await callAs(server, alice, 'messages.edit', {
      conversation: group.id,
      seq: first.seq + 1,
      text: 'hello @hugo, and all',
    });
    await eventually(
      () => mine(hugo),
      ({ unread_mentions: mentions }) => mentions === 1,
    );
    await send(server, hugo, group.id, 'yes, @hugo here');
    expect(await mine(hugo)).toMatchObject({ unread: 0, unread_mentions: 0 });
  });

  test('count mentions up to 1,000', async () => {
    const ivan = await joined(server, 'ivan', group.id);
    await server.database.query(
      (sql) => sql`
        insert into mention (account_id, conversation_id, seq)
        select ${ivan.id}, ${group.id}, last_seq + n from conversation_head, generate_series(1, 1500) n
        where conversation_id = ${group.id}`,
    );
    expect(await mine(ivan)).toMatchObject({ unread_mentions: 1_000 });
  });
});
