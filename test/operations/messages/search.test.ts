import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { SerializedMessage } from '../../../src/operations/core/serializers.ts';
import { callAs } from '../../support/call.ts';
import { waitingSessions } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { createPerson, signIn, type TestPerson } from '../../support/people.ts';
import { postJson, TestServer, type TestGroup } from '../../support/server.ts';
import { joined, privateOf, send, withScopes } from '../conversation-calls.ts';

interface Found {
  readonly messages: (SerializedMessage & { conversation: number })[];
  readonly next: string | null;
}

let server: TestServer;
let group: TestGroup;
let other: TestGroup;
let alice: TestPerson;
let bob: TestPerson;
let eve: TestPerson;
let secret: number;

const search = (person: TestPerson, text: string, more: object = {}): Promise<Found> =>
  callAs(server, person, 'messages.search', { text, ...more });
const texts = async (person: TestPerson, text: string, more: object = {}): Promise<string[]> =>
  (await search(person, text, more)).messages.map((message) => message.text);
/** Waits until every message is indexed. */
const settled = (): Promise<unknown> =>
  eventually(
    () =>
      server.database.query(
        (sql) => sql`
          select from conversation_head h left join search_index_progress d using (conversation_id)
          where h.last_rev > coalesce(d.indexed_rev, 0)`,
      ),
    (behind) => behind.length === 0,
  );

beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup('Operations');
  other = await server.createGroup('Other');
  alice = await joined(server, 'alice', group.id);
  bob = await joined(server, 'bob', group.id);
  eve = await createPerson(server, 'eve');
  await server.operate('groups.add-member', { group: other.id, user: 'bob' });
  await server.operate('groups.add-member', { group: other.id, user: 'eve' });
  secret = await privateOf(server, alice, bob);
  await send(server, alice, group.id, 'The disk of web-3 is full');
  await send(server, bob, other.id, 'A disk in the other group');
  await postJson(group.webhook, { text: 'ПРИВЕТ, ein Übermütiger Disk' });
  await send(server, alice, secret, 'the disk is our secret');
  await send(server, alice, group.id, 'nothing to see');
  await settled();
});
afterAll(() => server.stop());

describe('messages.search', () => {
  test('finds what the caller may see, newest first, and nothing else', async () => {
    expect(await texts(alice, 'disk')).toEqual([
      'the disk is our secret',
      'ПРИВЕТ, ein Übermütiger Disk',
      'The disk of web-3 is full',
    ]);
    expect(await texts(bob, 'disk')).toHaveLength(4);
    expect(await texts(eve, 'disk')).toEqual(['A disk in the other group']);
    expect(await texts(await createPerson(server, 'nobody'), 'disk')).toEqual([]);
    expect(await texts(await createPerson(server, 'root', { admin: true }), 'disk')).toEqual([]);
    const { messages } = await search(eve, 'disk');
    expect(messages).toEqual([
      {
        conversation: other.id,
        id: `${other.id}:1`,
        seq: 1,
        rev: expect.any(Number),
        sender: expect.objectContaining({ nick: 'bob' }),
        text: 'A disk in the other group',
        sent_at: expect.any(String),
        mentions: [],
        attachments: [],
      },
    ]);
  });

  test('of one conversation stays in it, and is refused to who is not in it', async () => {
    expect(await texts(alice, 'disk', { conversation: secret })).toEqual(['the disk is our secret']);
    await expect(search(eve, 'disk', { conversation: secret })).rejects.toMatchObject({ code: 'not_found' });
    await expect(search(eve, 'disk', { conversation: 99_999 })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('ends at once for who was removed', async () => {
    const carol = await joined(server, 'carol', group.id);
    expect(await texts(carol, 'disk')).toHaveLength(2);
    await server.operate('groups.remove-member', { group: group.id, user: 'carol' });
    expect(await texts(carol, 'disk')).toEqual([]);
  });

  test.each([
    ['привет', 1],
    ['ПрИвЕт', 1],
    ['übermütiger', 1],
    ['ÜBERMÜTIGER', 1],
    ['disk full', 1],
    ['"disk is"', 1],
    ['"is disk"', 0],
    ['secret or full', 2],
    ['disk -secret', 2],
    ['web-3', 1],
    ['absent', 0],
  ])('understands %s', async (text, count) => {
    const person = await joined(server, `p${server.port}-${Math.trunc(performance.now() * 1_000)}`, group.id);
    await server.database.query(
      (sql) => sql`
        insert into membership (conversation_id, account_id, role) values (${secret}, ${person.id}, 'member')`,
    );
    expect(await texts(person, text)).toHaveLength(count);
  });

  test.each([
    "'; drop table message; --",
    '" or " or',
    '& | ! ( ) <-> :* \\',
    '---',
    '-disk',
    '((((((((((',
    '\u202e\u{1F600}',
    `"${'a '.repeat(98)}"`,
    'or or or',
    '%_',
    '   ',
  ])('is not upset by %j', async (text) => {
    const person = await createPerson(server, `h${Math.trunc(performance.now() * 1_000)}`);
    expect(await texts(person, text)).toEqual([]);
  });

  test.each([
    [{ text: '' }, /^text: /],
    [{ text: 'x'.repeat(201) }, /^text: /],
    [{ text: 'a\u0000b' }, /NUL/],
    [{ text: 'a\ud800' }, /surrogate/],
    [{ text: 7 }, /^text: /],
    [{ text: 'a', limit: 51 }, /^limit: /],
    [{ text: 'a', before: 'x' }, /^before: /],
    [{ text: 'a', before: '1:0' }, /^before: /],
    [{ text: 'a', before: `1:${'9'.repeat(16)}` }, /^before: /],
    [{ text: 'a', conversation: 'Operations' }, /^conversation: /],
  ])('refuses %j', async (input, sentence) => {
    await expect(callAs(server, alice, 'messages.search', input)).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(sentence),
    });
  });

  test('needs the scope of a bot', async () => {
    const writer = await withScopes(server, bob, ['messages:write']);
    await expect(search(writer, 'disk')).rejects.toMatchObject({ code: 'missing_scope' });
  });

  test('pages through messages of the same moment without loss or repeat', async () => {
    const paged = await server.createGroup('Paged');
    const dora = await joined(server, 'dora', paged.id);
    await Promise.all(Array.from({ length: 23 }, (_, i) => send(server, dora, paged.id, `needle ${i}`)));
    await settled();
    const found: string[] = [];
    let before: string | undefined;
    for (;;) {
      const page: Found = await search(dora, 'needle', { limit: 5, before });
      found.push(...page.messages.map(({ id }) => id));
      if (page.next === null) break;
      before = page.next;
    }
    expect(found).toEqual(Array.from({ length: 23 }, (_, i) => `${paged.id}:${23 - i}`));
    await expect(search(eve, 'disk', { before: `${paged.id}:3` })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('no longer finds what was deleted, from that moment, nor the old text of what was edited', async () => {
    const kept = await send(server, alice, group.id, 'zebra crossing');
    const gone = await send(server, alice, group.id, 'zebra stripes');
    await settled();
    expect(await texts(alice, 'zebra')).toHaveLength(2);
    await callAs(server, alice, 'messages.delete', { conversation: group.id, seq: gone.seq });
    expect(await texts(alice, 'zebra')).toEqual(['zebra crossing']);
    await callAs(server, alice, 'messages.edit', { conversation: group.id, seq: kept.seq, text: 'horse crossing' });
    await settled();
    expect(await texts(alice, 'zebra')).toEqual([]);
    expect(await texts(alice, 'horse')).toEqual(['horse crossing']);
  });

  test('of one account goes one after the other, and not too often', async () => {
    const fred = await joined(server, 'fred', group.id);
    const answers = await Promise.allSettled(Array.from({ length: 30 }, () => search(fred, 'disk')));
    const refused = answers.filter(({ status }) => status === 'rejected');
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(30);
    for (const { reason } of refused as PromiseRejectedResult[]) expect(reason).toMatchObject({ code: 'rate_limited' });
    // The refused searches do not delay the searches of others.
    expect(await texts(bob, 'disk')).toHaveLength(4);
  });

  test('of a person and their bots goes one after the other', async () => {
    const gina = await joined(server, 'gina', group.id);
    const bot = await callAs(server, gina, 'bots.create', { nick: 'ginas-bot' });
    const own = { ...gina, ...(await signIn(server, bot.id, ['messages:read'])) };
    const searches: Promise<unknown>[] = [];
    await server.database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`lock table message`;
        searches.push(search(gina, 'disk'));
        await eventually(
          () => waitingSessions(server.database),
          (waiting) => waiting.length > 0,
        );
        await expect(search(own, 'disk')).rejects.toMatchObject({ code: 'rate_limited' });
      }),
    );
    await Promise.all(searches);
    await search(own, 'disk');
  });

  test('that takes too long is ended in the database, and says what to do', async () => {
    await server.database.query((sql) =>
      sql.unsafe(`
        alter table search_index rename to slow_index;
        create view search_index as select conversation_id, seq, sent_at, document from slow_index where pg_sleep(0.5) is not null`),
    );
    try {
      await server.database.query(
        (sql) => sql`insert into slow_index select conversation_id, seq + 1000, sent_at, document from slow_index`,
      );
      const [grace] = [await joined(server, 'grace', group.id)];
      await expect(search(grace, 'disk')).rejects.toMatchObject({ code: 'search_timeout', status: 422 });
      const left = await server.database.query(
        (sql) => sql`
          select query from pg_stat_activity
          where datname = current_database() and application_name = 'klatch search' and state = 'active'`,
      );
      expect([...left]).toEqual([]);
    } finally {
      await server.database.query((sql) =>
        sql.unsafe('drop view search_index; alter table slow_index rename to search_index'),
      );
    }
  });
});
