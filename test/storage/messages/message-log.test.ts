import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId, ConversationId, Seq } from '../../../src/model/ids.ts';
import type { Database } from '../../../src/storage/database.ts';
import { DatabaseUnavailableError } from '../../../src/storage/db/database-error.ts';
import { replaceIntegrationToken } from '../../../src/storage/groups/integrations.ts';
import { IntakeFullError, MessageLog, PoisonMessageError } from '../../../src/storage/messages/message-log.ts';
import type { Post, PostResult } from '../../../src/storage/messages/write-posts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import {
  keyedPost,
  logOptions,
  makeGroups,
  makeMembers,
  post,
  readWholeLog,
  removeMembers,
  sha256,
  type StoredGroup,
} from '../fixture.ts';

let test1: TestDatabase;
let database: Database;
let log: MessageLog;

beforeEach(async () => {
  test1 = await createTestDatabase();
  database = test1.open();
  log = new MessageLog(database.intake, logOptions());
});

afterEach(async () => {
  await log.stop();
  // After every test the queue must be empty, and its counters must agree.
  expect([log.depth, log.depthBytes]).toEqual([0, 0]);
  await test1.drop();
});

/** Texts that arrays, quoting and encodings could change on the way to the database. */
const AWKWARD = [
  '"quoted"',
  'back\\slash',
  '{a,b}',
  'NULL',
  'null',
  '',
  ' ',
  "it's",
  'line\nbreak\r\n',
  'Привет',
  '👩‍👩‍👧 𝄞',
];

function seqOf(posted: PostResult): Seq {
  if (posted.outcome === 'refused') throw new Error('the post was refused');
  return posted.seq;
}

describe('MessageLog', () => {
  test('of 500 posts at once with a poisonous one, 499 are stored in order and the one is rejected', async () => {
    const groups = await makeGroups(test1, 10);
    const texts = Array.from({ length: 500 }, (_, i) => `${AWKWARD[i % AWKWARD.length]} ${i}`);
    texts[237] = 'nul \u0000 byte';
    const answers = await Promise.allSettled(texts.map((text, i) => log.append(post(groups[i % 10]!, text))));

    const rejected = answers.flatMap((answer, i) =>
      answer.status === 'rejected' ? [{ i, reason: answer.reason }] : [],
    );
    expect(rejected).toEqual([{ i: 237, reason: expect.any(PoisonMessageError) }]);
    const stored = await readWholeLog(test1);
    expect(stored).toHaveLength(499);
    expect(log.counts.posted).toBe(499);
    const byId = new Map(stored.map((message) => [`${message.group}:${message.seq}`, message.text]));
    const newest = new Map<ConversationId, Seq>();
    answers.forEach((answer, i) => {
      if (answer.status === 'rejected') return;
      const { id } = groups[i % 10]!;
      const seq = seqOf(answer.value);
      expect(byId.get(`${id}:${seq}`)).toBe(texts[i]);
      // The posts of one caller get increasing numbers in the order in which it sent them.
      expect(seq).toBeGreaterThan(newest.get(id) ?? 0);
      newest.set(id, seq);
    });
  });

  test('awkward texts, labels and icons come back as they were', async () => {
    const [group] = await makeGroups(test1, 1);
    const cards = (text: string): object[] => [{ title: text, fields: [{ value: text }] }];
    const cardsJson = (text: string): string => JSON.stringify(cards(text));
    const given = (text: string): Partial<Post> => ({
      label: text,
      iconUrl: text,
      cardsJson: cardsJson(text),
      hops: 2,
    });
    await Promise.all(AWKWARD.map((text) => log.append(post(group!, text, given(text)))));
    // Posts with a key, which another statement writes, must arrive unchanged too.
    const keyed = (text: string): Partial<Post> => ({ ...given(text), key: `key of ${text}`, bodyHash: '-' });
    await Promise.all(AWKWARD.map((text) => log.append(post(group!, text, keyed(text)))));
    const rows = await test1.query((sql) => sql`select text, label, icon_url, cards, hops from message order by seq`);
    const stored = (text: string): object => ({ text, label: text, icon_url: text, cards: cards(text), hops: 2 });
    expect([...rows]).toEqual([...AWKWARD, ...AWKWARD].map(stored));
  });

  test('posts with cards share a commit with those without', async () => {
    const [group] = await makeGroups(test1, 1);
    const cardsJson = '[{"title":"one"}]';
    await Promise.all([log.append(post(group!, 'a', { cardsJson })), log.append(post(group!, 'b'))]);
    await Promise.all([log.append(post(group!, 'c', { cardsJson })), log.append(keyedPost(group!, 'key', 'd'))]);
    expect(log.counts.commits).toBe(2);
    const rows = await test1.query((sql) => sql`select text, cards from message order by seq`);
    expect(rows.map(({ text, cards }) => [text, cards])).toEqual([
      ['a', [{ title: 'one' }]],
      ['b', null],
      ['c', [{ title: 'one' }]],
      ['d', null],
    ]);
  });

  test('posts with a client_id share a commit with those without', async () => {
    const [group] = await makeGroups(test1, 1);
    const named = (name: string): Partial<Post> => ({ key: name, bodyHash: '-', clientId: name, attachments: [] });
    await Promise.all([log.append(post(group!, 'a', named('x'))), log.append(post(group!, 'b'))]);
    const cardsJson = '[{"title":"one"}]';
    await Promise.all([log.append(post(group!, 'c', { ...named('y'), cardsJson })), log.append(post(group!, 'd'))]);
    expect(log.counts.commits).toBe(2);
    const rows = await test1.query((sql) => sql`select text, client_id from message order by seq`);
    expect(rows.map(({ text, client_id: clientId }) => [text, clientId])).toEqual([
      ['a', 'x'],
      ['b', null],
      ['c', 'y'],
      ['d', null],
    ]);
  });

  test('posts of one turn of the event loop share a commit', async () => {
    const groups = await makeGroups(test1, 3);
    await Promise.all(groups.map((group) => log.append(post(group, 'hello'))));
    expect(log.counts).toMatchObject({ commits: 1, posted: 3, repeats: 0, failedCommits: 0 });
    expect(log.counts.batchPosts.read()).toMatchObject({ count: 1, sum: 3 });
    expect(log.counts.commitS.read().count).toBe(1);
  });

  test('two logs on one database leave no gap and keep the order of each caller', async () => {
    const groups = await makeGroups(test1, 3);
    const other = new MessageLog(test1.open().intake, logOptions());
    const caller = async (name: string, to: MessageLog): Promise<void> => {
      for (let i = 0; i < 15; i += 1) {
        await Promise.all(groups.map((group, g) => to.append(post(group, `${name}-${g} ${i * 2}`))));
        const burst = groups.map((group, g) => to.append(post(group, `${name}-${g} ${i * 2 + 1}`)));
        await Promise.all(burst.reverse());
      }
    };
    await Promise.all([caller('a', log), caller('b', other), caller('c', log), caller('d', other)]);
    await other.stop();

    const stored = await readWholeLog(test1);
    expect(stored).toHaveLength(4 * 15 * 2 * 3);
    const sequence = new Map<string, number[]>();
    for (const { text } of stored) {
      const [name, index] = text.split(' ') as [string, string];
      sequence.set(name, [...(sequence.get(name) ?? []), Number(index)]);
    }
    expect(sequence.size).toBe(12);
    for (const indices of sequence.values()) expect(indices).toEqual(Array.from({ length: 30 }, (_, i) => i));
  });

  test('the word of a commit names the newest seq of each conversation, before its posts are answered', async () => {
    const [first, second] = (await makeGroups(test1, 2)) as [StoredGroup, StoredGroup];
    const words: [ConversationId, Seq][][] = [];
    const told = new MessageLog(database.intake, logOptions({ onCommitted: (advanced) => words.push([...advanced]) }));
    const append = async (group: StoredGroup): Promise<number> => {
      await told.append(post(group, 'hello'));
      return words.length;
    };
    expect(await Promise.all([append(first), append(second), append(first)])).toEqual([1, 1, 1]);
    expect(words).toEqual([
      [
        [first.id, 2],
        [second.id, 1],
      ],
    ]);
    // The last append is a repeat, as after a lost answer. Such a repeat may be the first to report that the post is
    // stored.
    await told.append(keyedPost(first, 'k', 'once'));
    await told.append(post(first, 'another'));
    await told.append(keyedPost(first, 'k', 'once'));
    expect(words.slice(1)).toEqual([[[first.id, 3]], [[first.id, 4]], [[first.id, 3]]]);
    await told.stop();
  });
});

describe('the idempotency key', () => {
  test('answers a repeat with the first post, whether its body is the same or another', async () => {
    const [group] = await makeGroups(test1, 1);
    expect(await log.append(keyedPost(group!, 'k', 'one'))).toEqual({ outcome: 'new', seq: 1, logEpoch: 0 });
    expect(await log.append(keyedPost(group!, 'k', 'one'))).toEqual({
      outcome: 'repeat',
      seq: 1,
      logEpoch: 0,
      sameBody: true,
    });
    expect(await log.append(keyedPost(group!, 'k', 'two'))).toEqual({
      outcome: 'repeat',
      seq: 1,
      logEpoch: 0,
      sameBody: false,
    });
    expect(await readWholeLog(test1)).toEqual([{ group: group!.id, seq: 1, text: 'one' }]);
  });

  test('holds among the posts of one flush, and in each conversation for itself', async () => {
    const [first, second] = (await makeGroups(test1, 2)) as [StoredGroup, StoredGroup];
    const answers = await Promise.all(
      [
        keyedPost(first, 'k', 'one'),
        keyedPost(second, 'k', 'one'),
        keyedPost(first, 'k', 'one'),
        post(first, 'without a key'),
        keyedPost(first, 'k', 'two'),
        keyedPost(second, 'l', 'other'),
      ].map((p) => log.append(p)),
    );
    expect(log.counts.commits).toBe(1);
    expect(answers).toEqual([
      { outcome: 'new', seq: 1, logEpoch: 0 },
      { outcome: 'new', seq: 1, logEpoch: 0 },
      { outcome: 'repeat', seq: 1, logEpoch: 0, sameBody: true },
      { outcome: 'new', seq: 2, logEpoch: 0 },
      { outcome: 'repeat', seq: 1, logEpoch: 0, sameBody: false },
      { outcome: 'new', seq: 2, logEpoch: 0 },
    ]);
    expect(await readWholeLog(test1)).toHaveLength(4);
  });

  test('of a refused post is not remembered', async () => {
    const [group] = await makeGroups(test1, 1);
    const wrong = { ...keyedPost(group!, 'k', 'one'), admission: sha256('another') };
    const right = keyedPost(group!, 'k', 'one');
    expect(await Promise.all([log.append(wrong), log.append(right), log.append(wrong)])).toEqual([
      { outcome: 'refused' },
      { outcome: 'new', seq: 1, logEpoch: 0 },
      { outcome: 'refused' },
    ]);
  });
});

describe('admission', () => {
  test('refuses a token of another group and who is no member, and lets a member post without a token', async () => {
    const [group, other] = (await makeGroups(test1, 2)) as [StoredGroup, StoredGroup];
    const [alice, eve] = (await makeMembers(test1, group, ['alice', 'eve'])) as [AccountId, AccountId];
    await removeMembers(test1, group, [eve]);
    const posts = [
      post(group, 'a', { admission: other.tokenHash }),
      post(group, 'b', { admission: null, senderId: alice }),
      post(group, 'd', { admission: null, senderId: eve }),
      post(group, 'c'),
    ];
    expect(await Promise.all(posts.map((p) => log.append(p)))).toEqual([
      { outcome: 'refused' },
      { outcome: 'new', seq: 1, logEpoch: 0 },
      { outcome: 'refused' },
      { outcome: 'new', seq: 2, logEpoch: 0 },
    ]);
    expect((await readWholeLog(test1)).map((message) => message.text)).toEqual(['b', 'c']);
  });

  test('refuses the old token from its rotation on', async () => {
    const [group] = await makeGroups(test1, 1);
    const token = { hash: sha256('new token'), sealed: '-' };
    await database.general.transaction((tx) => replaceIntegrationToken(tx, group!.id, token));
    expect(await log.append(post(group!, 'old'))).toEqual({ outcome: 'refused' });
    expect(await log.append(post(group!, 'new', { admission: token.hash }))).toEqual({
      outcome: 'new',
      seq: 1,
      logEpoch: 0,
    });
  });

  test('refuses a post into an archived group and into one that is not there, and nothing else of the flush', async () => {
    const [archived, open] = (await makeGroups(test1, 2)) as [StoredGroup, StoredGroup];
    await test1.query(
      (sql) => sql`update conversation_head set archived_at = now() where conversation_id = ${archived.id}`,
    );
    const nowhere = { ...open, id: 999 as ConversationId };
    expect(await Promise.all([archived, nowhere, open].map((group) => log.append(post(group, 'hello'))))).toEqual([
      { outcome: 'refused' },
      { outcome: 'refused' },
      { outcome: 'new', seq: 1, logEpoch: 0 },
    ]);
  });
});

describe('the bounds of the intake', () => {
  test('a post past the number that may wait is refused at once', async () => {
    const [group] = await makeGroups(test1, 1);
    const small = new MessageLog(database.intake, logOptions({ maxUnansweredPosts: 3 }));
    const answers = await Promise.allSettled(Array.from({ length: 5 }, (_, i) => small.append(post(group!, `${i}`))));
    expect(answers.map((answer) => answer.status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ]);
    expect(answers[3]).toMatchObject({ reason: expect.any(IntakeFullError) });
    // Posts that are answered no longer count towards the limit of the queue.
    expect(await small.append(post(group!, 'after'))).toEqual({ outcome: 'new', seq: 4, logEpoch: 0 });
    await small.stop();
  });

  test('a post past the bytes that may wait is refused, its label and cards counted with its text', async () => {
    const [group] = await makeGroups(test1, 1);
    const small = new MessageLog(database.intake, logOptions({ maxUnansweredBytes: 4_000 }));
    const [first, second, third] = await Promise.allSettled([
      small.append(post(group!, 'é'.repeat(1_000))),
      small.append(post(group!, 'x'.repeat(200), { label: 'y'.repeat(500), cardsJson: `"${'y'.repeat(498)}"` })),
      small.append(post(group!, 'z')),
    ]);
    expect([first?.status, second?.status, third?.status]).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(third).toMatchObject({ reason: expect.any(IntakeFullError) });
    expect(small.depth).toBe(0);
    await small.stop();
  });

  test.each([
    ['posts', { maxFlushPosts: 10 }],
    ['bytes', { maxFlushBytes: 10 * 1_400 }],
  ])('a flush takes no more %s than it may, and a single post of any size', async (_what, bounds) => {
    const [group] = await makeGroups(test1, 1);
    const small = new MessageLog(database.intake, logOptions(bounds));
    const texts = Array.from({ length: 25 }, (_, i) => String(i).padEnd(1_000, '.'));
    await Promise.all(texts.map((text) => small.append(post(group!, text))));
    expect(small.counts).toMatchObject({ commits: 3, posted: 25, repeats: 0, failedCommits: 0 });
    expect(small.counts.batchPosts.read()).toMatchObject({ count: 3, sum: 25 });
    await small.append(post(group!, 'x'.repeat(100_000)));
    expect(small.counts.commits).toBe(4);
    await small.stop();
    expect((await readWholeLog(test1)).map((message) => message.text).slice(0, 25)).toEqual(texts);
  });
});

describe('stop()', () => {
  test('writes what waits and then refuses', async () => {
    const [group] = await makeGroups(test1, 1);
    const few = new MessageLog(database.intake, logOptions({ maxFlushPosts: 7 }));
    const answers = Array.from({ length: 30 }, (_, i) => few.append(post(group!, `${i}`)));
    await Promise.all([few.stop(), few.stop()]);
    expect((await Promise.all(answers)).map(seqOf)).toEqual(Array.from({ length: 30 }, (_, i) => i + 1));
    await expect(few.append(post(group!, 'late'))).rejects.toThrow(DatabaseUnavailableError);
    expect(await readWholeLog(test1)).toHaveLength(30);
  });
});
