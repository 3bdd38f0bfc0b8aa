import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { notify } from '../../src/storage/db/notifications.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson } from '../support/people.ts';
import type { LiveClient } from './client.ts';
import { LiveFixture } from './fixture.ts';

let live: LiveFixture;
beforeEach(async () => {
  live = await LiveFixture.start();
});
afterEach(async () => live.stop());

const textsOf = (client: LiveClient): string[] =>
  client.changes(live.group.id).flatMap(({ message }) => message?.text ?? []);

/** Resolves when the client has received the text. */
const got = (client: LiveClient, text: string): Promise<string | undefined> =>
  eventually(
    () => textsOf(client).at(-1),
    (last) => last === text,
  );

describe('a client that follows', () => {
  test('gets what is posted, over /v1/live, the ws endpoint and the tcp endpoint alike', async () => {
    for (const url of live.urls) {
      const client = await live.signIn(url);
      const { conversations } = await client.call('live.subscribe');
      const { rev } = conversations.find(({ id }: { id: number }) => id === live.group.id);
      await live.post(`hello ${url}`);
      await got(client, `hello ${url}`);
      expect(client.changes(live.group.id)[0]).toMatchObject({ conversation: live.group.id, rev: rev + 1 });
    }
  });

  test('gets what it lacks first, from where it says, and then what is new', async () => {
    for (let n = 1; n <= 5; n += 1) await live.post(`old ${n}`);
    const client = await live.signIn(live.urls[2]);
    expect(await client.call('live.subscribe', { default: 'start' })).toEqual({
      conversations: [{ id: live.group.id, rev: 0 }],
      complete: true,
    });
    await live.post('new');
    await got(client, 'new');
    const revs = client.changes(live.group.id).map(({ rev }) => rev);
    expect(revs).toEqual(revs.map((_, index) => index + 1));
    expect(textsOf(client)).toEqual(['old 1', 'old 2', 'old 3', 'old 4', 'old 5', 'new']);
    const again = await live.signIn(live.urls[1]);
    const since = { [live.group.id]: revs.at(-2) };
    expect(await again.call('live.subscribe', { since })).toEqual({
      conversations: [{ id: live.group.id, rev: revs.at(-2) }],
      complete: true,
    });
    await got(again, 'new');
    expect(textsOf(again)).toEqual(['new']);
  });

  test('gets the first change behind the answer, and is told where it begins when it claims to have more than there is', async () => {
    await live.post('one');
    const client = await live.signIn(live.urls[0]);
    const { conversations } = await client.call('live.subscribe', { since: { [live.group.id]: 1_000, 999: 5 } });
    expect(conversations).toEqual([{ id: live.group.id, rev: expect.any(Number) }]);
    expect(conversations[0].rev).toBeLessThan(1_000);
    expect(JSON.parse(client.texts.at(-1)!)).toHaveProperty('result.conversations');
    await live.post('two');
    await got(client, 'two');
    expect(textsOf(client)).toEqual(['two']);
  });

  test('gets texts of every length whole: frames have three ways to say how long they are', async () => {
    const clients = await Promise.all(live.urls.map((url) => live.follow(url)));
    const texts = ['x', 'ü'.repeat(500), '€'.repeat(40_000), '\u2028 \n " \\ 🙂', 'x'.repeat(40_000)];
    for (const text of texts) await live.post(text);
    for (const client of clients) {
      await got(client, texts.at(-1)!);
      expect(textsOf(client)).toEqual(texts);
    }
  });

  test('gets edits and deletions as new states of a message', async () => {
    const client = await live.follow(live.urls[0]);
    const { id } = await client.call('messages.send', { conversation: live.group.id, text: 'tpyo' });
    const seq = Number(String(id).split(':')[1]);
    await client.call('messages.edit', { conversation: live.group.id, seq, text: 'typo' });
    await client.call('messages.delete', { conversation: live.group.id, seq });
    const changes = await eventually(
      () => client.changes(live.group.id),
      (all) => all.at(-1)?.message?.deleted === true,
    );
    const revs = changes.map(({ rev }) => rev);
    expect(revs).toEqual(revs.toSorted((a, b) => a - b));
    expect(new Set(revs).size).toBe(revs.length);
    expect(changes.at(-1).message).toMatchObject({ seq, text: '', deleted: true });
  });

  test('is told when it is in more conversations than a connection follows', async () => {
    const followed = async (): Promise<{ conversations: { id: number }[]; complete: boolean }> =>
      (await live.signIn(live.urls[2])).call('live.subscribe');
    await joinMore(19_999);
    const all = await followed();
    expect(all.complete).toBe(true);
    expect(all.conversations).toHaveLength(20_000);
    await joinMore(1);
    const most = await followed();
    expect(most.complete).toBe(false);
    expect(most.conversations.map(({ id }) => id)).toEqual(all.conversations.map(({ id }) => id));
  });

  test('gets nothing of what is left out, until there is room for it', async () => {
    await joinMore(20_000);
    const client = await live.signIn(live.urls[2]);
    const { conversations, complete } = await client.call('live.subscribe');
    expect([conversations.length, complete]).toEqual([20_000, false]);
    const compare = (): Promise<unknown> => live.server.database.query((sql) => notify(sql, 'another-node *'));
    await live.server.database.query(
      (sql) => sql`delete from membership where conversation_id = ${live.group.id} and account_id = ${live.alice.id}`,
    );
    await compare();
    await eventually(
      () => client.of('conversation.left').length,
      (count) => count === 1,
    );
    await client.call('live.ping');
    expect(client.of('conversation.joined')).toEqual([]);
    await compare();
    await eventually(
      () => client.of('conversation.joined').length,
      (count) => count === 1,
    );
  });

  test('follows once, and nothing before it has said who it is', async () => {
    const client = await live.connect(live.urls[2]);
    expect(await client.request('live.subscribe')).toMatchObject({ error: { data: { code: 'unauthenticated' } } });
    await client.call('live.authenticate', { token: live.alice.token });
    await client.call('live.subscribe');
    expect(await client.request('live.subscribe')).toMatchObject({ error: { data: { code: 'invalid_input' } } });
    expect(await client.request('live.authenticate', { token: live.alice.token })).toMatchObject({
      error: { data: { code: 'forbidden' } },
    });
  });
});

/** Adds alice to this many further conversations. */
async function joinMore(count: number): Promise<void> {
  await live.server.database.query(
    (sql) => sql`
      with made as (
        insert into conversation (kind, title) select 'group', 'Group ' || n from generate_series(1, ${count}::int) n
        returning id
      ), heads as (insert into conversation_head (conversation_id) select id from made)
      insert into membership (conversation_id, account_id, role) select id, ${live.alice.id}::bigint, 'member' from made`,
  );
}

describe('membership', () => {
  test('what a removed member follows ends at once, and nothing of it comes behind that', async () => {
    const bob = await createPerson(live.server, 'bob');
    await live.add('bob');
    const clients = await Promise.all(live.urls.map((url) => live.follow(url, bob.token)));
    await live.post('before');
    await Promise.all(clients.map((client) => got(client, 'before')));
    const posting = (async () => {
      for (let n = 0; n < 40; n += 1) await live.post(`around ${n}`);
    })();
    await live.remove('bob');
    await posting;
    await live.post('after');
    for (const client of clients) {
      await eventually(
        () => client.of('conversation.left').length,
        (count) => count === 1,
      );
      // When the ping is answered, every earlier notification has arrived.
      await client.call('live.ping');
      const left = client.notifications.findIndex(({ method }) => method === 'conversation.left');
      const behind = client.notifications.slice(left + 1);
      expect(behind.filter(({ params }) => params.conversation === live.group.id)).toEqual([]);
      expect(textsOf(client)).not.toContain('after');
    }
  });

  test('who is added gets the conversation from the notice on that says so', async () => {
    const bob = await createPerson(live.server, 'bob');
    await live.post('before');
    const client = await live.follow(live.urls[0], bob.token);
    await live.add('bob');
    await live.post('after');
    await got(client, 'after');
    const [joined] = client.of('conversation.joined');
    const changes = client.changes(live.group.id);
    expect(joined!.params.conversation).toBe(live.group.id);
    expect(changes[0]).toMatchObject({ rev: joined!.params.rev + 1, notice: { kind: 'joined' } });
    expect(changes.map(({ rev }) => rev)).toEqual(changes.map((_, index) => joined!.params.rev + 1 + index));
    await live.remove('bob');
    await eventually(
      () => client.of('conversation.left').length,
      (count) => count === 1,
    );
    await live.add('bob');
    await eventually(
      () => client.of('conversation.joined').length,
      (count) => count === 2,
    );
  });

  test('a change of role interrupts nothing', async () => {
    const client = await live.follow(live.urls[0]);
    await live.post('one');
    await live.server.operate('groups.add-member', { group: live.group.id, user: 'alice', role: 'admin' });
    await live.post('two');
    await got(client, 'two');
    const revs = client.changes(live.group.id).map(({ rev }) => rev);
    expect(revs).toEqual(revs.map((_, index) => revs[0] + index));
    expect(client.of('conversation.left')).toEqual([]);
  });
});
