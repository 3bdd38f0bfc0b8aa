import { afterEach, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase } from '../support/database.ts';
import { createPerson } from '../support/people.ts';
import { postJson } from '../support/server.ts';
import type { LiveClient } from './client.ts';
import { LiveFixture } from './fixture.ts';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const POSTS = 300;

/**
 * A client that is killed repeatedly and continues after its last change. It records the changes of all its
 * connections.
 */
class Reader {
  readonly revs: number[] = [];
  readonly texts: string[] = [];
  lives = 0;
  readonly #live: LiveFixture;
  readonly #url: string;
  #client: LiveClient | null = null;

  constructor(live: LiveFixture, url: string) {
    this.#live = live;
    this.#url = url;
  }

  async connect(): Promise<void> {
    this.lives += 1;
    const since = { [this.#live.group.id]: this.revs.at(-1) ?? 0 };
    this.#client = await this.#live.follow(this.#url, this.#live.alice.token, { since });
  }

  /** Destroys the connection in the middle of its input, and keeps the received changes. */
  kill(): void {
    this.#client!.kill();
    this.collect();
    this.#client = null;
  }

  collect(): void {
    for (const { rev, message } of this.#client!.changes(this.#live.group.id).slice(this.#taken)) {
      this.revs.push(rev);
      if (message !== undefined) this.texts.push(message.text);
    }
    this.#seen.set(this.#client!, this.#client!.changes(this.#live.group.id).length);
  }

  readonly #seen = new WeakMap<LiveClient, number>();
  get #taken(): number {
    return this.#seen.get(this.#client!) ?? 0;
  }
}

test('nothing is missed or repeated while messages are posted and edited and connections are killed', async () => {
  const live = await LiveFixture.start({ limits: { postBurstPerToken: 10_000, postsPerSecondPerToken: 10_000 } });
  stops.push(() => live.stop());
  const readers = [0, 1, 2, 0, 2].map((index) => new Reader(live, live.urls[index]!));
  await Promise.all(readers.map((reader) => reader.connect()));
  const writer = await live.signIn(live.urls[0]);
  const posting = Promise.all(Array.from({ length: POSTS }, (_, n) => live.post(`post ${n}`)));
  const editing = (async () => {
    for (let n = 0; n < 30; n += 1) {
      const { id } = await writer.call('messages.send', { conversation: live.group.id, text: `draft ${n}` });
      const seq = Number(String(id).split(':')[1]);
      await writer.call('messages.edit', { conversation: live.group.id, seq, text: `final ${n}` });
    }
  })();
  const killing = (async () => {
    for (let n = 0; n < 20; n += 1) {
      const reader = readers[n % readers.length]!;
      reader.kill();
      await reader.connect();
    }
  })();
  await Promise.all([posting, editing, killing]);
  const { conversations } = await writer.call('live.subscribe', { default: 'now' });
  const head = conversations[0].rev as number;
  for (const reader of readers) {
    await eventually(
      () => {
        reader.collect();
        return reader.revs.at(-1);
      },
      (rev) => rev === head,
    );
    expect(reader.lives).toBeGreaterThan(1);
    // The changes come in order, each at most once.
    expect(reader.revs).toEqual(reader.revs.toSorted((a, b) => a - b));
    expect(new Set(reader.revs).size).toBe(reader.revs.length);
    const texts = reader.texts.filter((text) => text.startsWith('post '));
    expect(texts.toSorted()).toEqual(Array.from({ length: POSTS }, (_, n) => `post ${n}`).toSorted());
    expect(new Set(reader.texts.filter((text) => text.startsWith('final '))).size).toBe(30);
  }
});

test('many clients that come back at once after many messages share what is read', async () => {
  const live = await LiveFixture.start({
    limits: { postBurstPerToken: 10_000, postsPerSecondPerToken: 10_000 },
    live: { maxConnectionsPerUser: 1_000 },
    metrics: { metricsEnabled: true },
  });
  stops.push(() => live.stop());
  for (let n = 0; n < 10; n += 1) {
    await Promise.all(Array.from({ length: 200 }, (_, i) => live.post(`post ${n * 200 + i}`)));
  }
  const reads = 'klatch_live_change_reads_total{purpose="catch_up"}';
  const clients = await Promise.all(
    Array.from({ length: 60 }, (_, n) => live.follow(live.urls[n % 3]!, live.alice.token, { default: 'start' })),
  );
  for (const client of clients) {
    const changes = await eventually(
      () => client.changes(live.group.id),
      (all) => all.filter(({ message }) => message !== undefined).length >= 2_000,
    );
    const revs = changes.map(({ rev }) => rev);
    expect(revs).toEqual(revs.map((_, index) => revs[0] + index));
  }
  // Two thousand messages are a few pages. There would be 300 reads if each of the sixty clients read its own.
  expect(await live.metric(reads)).toBeLessThan(30);
});

test('what happens on another node is told on this one: posts, edits, removals, ended sessions', async () => {
  const database = await createTestDatabase();
  stops.push(() => database.drop());
  const here = await LiveFixture.start({}, { database });
  stops.push(() => here.stop());
  const there = await (await import('../support/server.ts')).TestServer.start({}, { database });
  stops.push(() => there.stop());
  const bob = await createPerson(here.server, 'bob');
  await here.add('bob');
  const client = await here.follow(here.urls[0], bob.token);
  const webhook = here.group.webhook.replace(here.server.url, there.url);
  // Nodes find each other by heartbeats. Until then, a node that knows no peers sends no notifications.
  await eventually(
    async () => {
      await postJson(webhook, { text: 'from there' });
      return client.changes(here.group.id).length;
    },
    (count) => count > 0,
  );
  const revs = client.changes(here.group.id).map(({ rev }) => rev);
  expect(revs).toEqual(revs.map((_, index) => revs[0] + index));
  await there.operate('groups.remove-member', { group: here.group.id, user: 'bob' });
  await eventually(
    () => client.of('conversation.left').length,
    (count) => count === 1,
  );
  await there.operate('groups.add-member', { group: here.group.id, user: 'bob' });
  await eventually(
    () => client.of('conversation.joined').length,
    (count) => count === 1,
  );
});
