import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { listConversations } from '../../src/storage/groups/conversations.ts';
import type { AccountId } from '../../src/model/ids.ts';
import { callAs } from '../support/call.ts';
import { within } from '../run/machine-speed.ts';
import { postJson, TestServer } from '../support/server.ts';
import { createGroup, createPeople, type People } from './fixture.ts';

let server: TestServer;
let people: People;
beforeAll(async () => {
  server = await TestServer.start();
  people = await createPeople(server, 'alice', 'bob', 'carol', 'busy');
});
afterAll(() => server.stop());

const as = (nick: string, name: string, input: object = {}) => callAs(server, people[nick]!, name, input);
const post = async (group: number, text: string): Promise<void> => {
  const { webhook } = await as('alice', 'groups.info', { group });
  const answer = await postJson(webhook.replace('http://klatch.example', server.url), { text });
  expect(answer.status).toBe(200);
};

describe("the list of one's own conversations", () => {
  test('has what is unread, and what of that mentions the reader', async () => {
    const group = await createGroup(server, people['alice']!, { title: 'News', members: { bob: 'member' } });
    for (const text of ['one', 'two', 'three']) await post(group, text);
    const show = () => as('bob', 'conversations.show', { conversation: group });
    expect(await show()).toMatchObject({ last_seq: 3, read_seq: 0, unread: 3, unread_mentions: 0 });
    await server.database.query(async (sql) => {
      await sql`
        insert into mention (account_id, conversation_id, seq)
        values (${people['bob']!.id}, ${group}, 1), (${people['bob']!.id}, ${group}, 3), (${people['carol']!.id}, ${group}, 3)
        on conflict do nothing`;
      await sql`update membership set read_seq = 2 where conversation_id = ${group} and account_id = ${people['bob']!.id}`;
    });
    const shown = await show();
    expect(shown).toMatchObject({ title: 'News', kind: 'group', role: 'member', members: 2, peer: null });
    expect(shown).toMatchObject({ read_seq: 2, unread: 1, unread_mentions: 1 });
    expect(Date.parse(shown.last_at)).toBeGreaterThan(Date.now() - 60_000);
    const { conversations } = await as('bob', 'conversations.list');
    expect(conversations).toEqual([shown]);
  });

  test('has the newest message of each, cut to 200 characters, as it is now', async () => {
    const group = await createGroup(server, people['alice']!, { title: 'Previews', members: { bob: 'member' } });
    const shown = async (): Promise<unknown> => {
      const { conversations } = await as('bob', 'conversations.list');
      return conversations.find(({ id }: { id: number }) => id === group).last_message;
    };
    expect(await shown()).toBeNull();
    const clef = '\u{1D11E}';
    const sent = await as('alice', 'messages.send', { conversation: group, text: clef.repeat(300), client_id: 'own' });
    const sender = { id: people['alice']!.id, name: 'alice', nick: 'alice', kind: 'user' };
    const { seq } = sent;
    expect(await shown()).toEqual({ seq, sender, text: clef.repeat(200), attachments: 0 });
    await as('alice', 'messages.edit', { conversation: group, seq, text: 'another' });
    expect(await shown()).toEqual({ seq, sender, text: 'another', attachments: 0 });
    await as('alice', 'messages.delete', { conversation: group, seq });
    expect(await shown()).toEqual({ seq, sender, text: '', deleted: true, attachments: 0 });
    await server.database.query(
      (sql) => sql`update conversation_head set first_seq = ${seq + 1} where conversation_id = ${group}`,
    );
    expect(await shown()).toBeNull();
  });

  test('shows what a webhook calls itself, and how many files a message carries', async () => {
    const group = await createGroup(server, people['alice']!);
    const { webhook } = await as('alice', 'groups.info', { group });
    const url = webhook.replace('http://klatch.example', server.url);
    await postJson(url, { text: 'disk full', username: 'Grafana' });
    const show = () => as('alice', 'conversations.show', { conversation: group });
    expect((await show()).last_message).toMatchObject({
      label: 'Grafana',
      text: 'disk full',
      sender: { kind: 'webhook' },
    });
    const form = new FormData();
    form.set('text', 'two files');
    for (const name of ['a.txt', 'b.txt']) form.append('file', new Blob([name]), name);
    expect((await fetch(url, { method: 'POST', body: form })).status).toBe(200);
    expect((await show()).last_message).toMatchObject({ text: 'two files', attachments: 2 });
  });

  test('shows to who comes later nothing of before as unread', async () => {
    const group = await createGroup(server, people['alice']!);
    await post(group, 'before');
    await as('alice', 'groups.add-member', { group, user: 'carol' });
    await post(group, 'after');
    expect(await as('carol', 'conversations.show', { conversation: group })).toMatchObject({ read_seq: 1, unread: 1 });
  });

  test('comes in pages by number, and has what is archived', async () => {
    const groups: number[] = [];
    for (let i = 0; i < 5; i += 1) groups.push(await createGroup(server, people['busy']!));
    await as('busy', 'groups.archive', { group: groups[1]! });
    const first = await as('busy', 'conversations.list', { limit: 3 });
    expect(first.conversations.map((c: { id: number; archived: boolean }) => [c.id, c.archived])).toEqual([
      [groups[0], false],
      [groups[1], true],
      [groups[2], false],
    ]);
    const rest = await as('busy', 'conversations.list', { limit: 3, after: first.next });
    expect(rest.conversations.map(({ id }: { id: number }) => id)).toEqual(groups.slice(3));
    expect(rest.next).toBeNull();
  });

  test("is an account's: the command line has none, nobody neither", async () => {
    await expect(server.operate('conversations.list')).rejects.toThrow('Only an account can do this');
    await expect(callAs(server, null, 'conversations.list')).rejects.toMatchObject({ code: 'unauthenticated' });
    await expect(as('bob', 'conversations.show', { conversation: 999_999 })).rejects.toMatchObject({
      code: 'not_found',
      message: 'You are in no conversation 999999: look at the list of yours',
    });
  });

  test('reads 1,000 of them by keys, without a pass over the members of others', async () => {
    const busy = people['busy']!.id;
    await server.database.query(async (sql) => {
      await sql`
        with made as (insert into conversation (kind, title) select 'group', 'G' || i from generate_series(1, 1000) i returning id),
          heads as (insert into conversation_head (conversation_id, last_seq, last_rev) select id, 1, 1 from made),
          messages as (
            insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
            select id, 1, 1, ${busy}, repeat('long ', 800), now() from made)
        insert into membership (conversation_id, account_id, role) select id, ${busy}, 'member' from made`;
      // Each conversation has 20 other members, and there are as many conversations without the reader.
      await sql`
        with others as (
          insert into account (kind, nick, name) select 'user', 'other-' || i, 'Other' from generate_series(1, 20) i returning id)
        insert into membership (conversation_id, account_id, role)
        select c.id, o.id, 'member' from conversation c cross join others o where c.title like 'G%'`;
      await sql`analyze`;
    });
    const asked = { accountId: busy as AccountId, after: 0, limit: 1_001 };
    const started = performance.now();
    const rows = await server.database.query((sql) => listConversations(sql, asked));
    const tookMs = performance.now() - started;
    expect(rows).toHaveLength(1_001);
    expect(rows.at(-1)).toMatchObject({ members: 21, lastMessage: { seq: 1, text: 'long '.repeat(40) } });
    // The query takes 10 to 30 ms here. A query for each row, or a pass over all members for each, takes far longer.
    expect(tookMs).toBeLessThan(within(1_500));
    let next: number | null = 0;
    const ids = new Set<number>();
    while (next !== null) {
      const page: { conversations: { id: number }[]; next: number | null } = await as('busy', 'conversations.list', {
        after: next,
        limit: 400,
      });
      for (const { id } of page.conversations) ids.add(id);
      next = page.next;
    }
    expect(ids.size).toBe(1_005);
  });
});
