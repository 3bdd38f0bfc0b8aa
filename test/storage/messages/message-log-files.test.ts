import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Attachment } from '../../../src/model/attachment.ts';
import type { AccountId, ConversationId, Seq } from '../../../src/model/ids.ts';
import type { Database } from '../../../src/storage/database.ts';
import { DatabaseUnavailableError } from '../../../src/storage/db/database-error.ts';
import { IntakeFullError, MessageLog } from '../../../src/storage/messages/message-log.ts';
import type { Post } from '../../../src/storage/messages/write-posts.ts';
import { eraseMessage, lockHeadAndReadMessage } from '../../../src/storage/messages/messages.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import {
  holdOpen,
  isWaiting,
  keyedPost,
  logOptions,
  makeGroups,
  makeMembers,
  post,
  readWholeLog,
  removeMembers,
  until,
  type StoredGroup,
} from '../fixture.ts';

let test1: TestDatabase;
let database: Database;
let log: MessageLog;
let group: StoredGroup;
let alice: AccountId;
let bob: AccountId;

beforeEach(async () => {
  test1 = await createTestDatabase();
  // The time-outs are long, so that the test can observe the wait for a lock.
  database = test1.open({ lockTimeoutMs: 60_000, flushTimeoutMs: 60_000, databaseCallTimeoutMs: 60_000 });
  log = new MessageLog(database.intake, logOptions());
  [group] = (await makeGroups(test1, 1)) as [StoredGroup];
  [alice, bob] = (await makeMembers(test1, group, ['alice', 'bob'])) as [AccountId, AccountId];
});
afterEach(async () => {
  await log.stop();
  expect(log.depth).toBe(0);
  await test1.drop();
});

type State = 'uploading' | 'stored' | 'removed';

/** Inserts files of an account; returns their ids. */
async function makeFiles(owner: AccountId, count: number, state: State = 'stored'): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomBytes(16).toString('base64url'));
  await test1.query(async (sql) => {
    await sql`
      insert into file (id, owner_id, name, type, size, received, state)
      select id, ${owner}, 'name ' || n, 'text/plain', n, n, ${state} from unnest(${ids}::text[]) with ordinality as u(id, n)`;
  });
  return ids;
}

const makeFile = async (owner: AccountId, state: State = 'stored'): Promise<string> =>
  (await makeFiles(owner, 1, state))[0]!;

const by = (senderId: AccountId, text: string, attachments: readonly string[], more: Partial<Post> = {}): Post =>
  post(group, text, { admission: null, senderId, attachments, ...more });

interface FileRow {
  readonly id: string;
  readonly group: ConversationId | null;
  readonly seq: Seq | null;
  readonly state: State;
}

const fileRows = (): Promise<FileRow[]> =>
  test1.query(async (sql) => [
    ...(await sql<FileRow[]>`select id, conversation_id as group, seq, state from file order by id`),
  ]);

/** Checks the invariant that a file and its message refer to each other. */
async function checkFiles(): Promise<void> {
  await test1.query(async (sql) => {
    const carried = await sql<{ id: string; place: string }[]>`
      select a ->> 'id' as id, m.conversation_id || ':' || m.seq as place
      from message m cross join jsonb_array_elements(m.attachments) a order by 1`;
    const owned = await sql<{ id: string; place: string }[]>`
      select id, conversation_id || ':' || seq as place from file where seq is not null and state = 'stored' order by 1`;
    expect([...carried]).toEqual([...owned]);
    expect([
      ...(await sql`select m.seq from message m join file f using (conversation_id, seq) where f.owner_id <> m.sender_id`),
    ]).toEqual([]);
  });
}

async function attachmentsOf(seq: number): Promise<readonly Attachment[] | null> {
  const rows = await test1.query(
    (sql) =>
      sql<{ attachments: Attachment[] | null }[]>`
        select attachments from message where conversation_id = ${group.id} and seq = ${seq}`,
  );
  return rows[0]!.attachments;
}

async function erase(seq: Seq, accountId = alice, conversationId = group.id): Promise<void> {
  const key = { conversationId, seq };
  await database.general.transaction(async (tx) => {
    await lockHeadAndReadMessage(tx, { ...key, accountId });
    await eraseMessage(tx, { ...key, actorId: accountId, hops: 0 });
  });
}

describe('a post with files', () => {
  test('is written with what their rows say, in the order of the post, and they belong to it', async () => {
    const [first, second] = (await makeFiles(alice, 2)) as [string, string];
    expect(await log.append(by(alice, '', [second, first]))).toEqual({ outcome: 'new', seq: 1, logEpoch: 0 });
    expect(await attachmentsOf(1)).toEqual([
      { id: second, name: 'name 2', type: 'text/plain', size: 2 },
      { id: first, name: 'name 1', type: 'text/plain', size: 1 },
    ]);
    await checkFiles();
    // A post marks its message as read by the sender.
    const [row] = await test1.query((sql) => sql`select read_seq from membership where account_id = ${alice}`);
    expect(row).toEqual({ read_seq: 1 });
  });

  test("of a webhook carries its integration's files", async () => {
    const id = await makeFile(group.accountId);
    expect(await log.append(post(group, 'report', { attachments: [id] }))).toEqual({
      outcome: 'new',
      seq: 1,
      logEpoch: 0,
    });
    expect(await attachmentsOf(1)).toMatchObject([{ id }]);
    await checkFiles();
  });

  test.each<[string, () => Promise<string>]>([
    ["somebody else's", () => makeFile(bob)],
    ['not complete', () => makeFile(alice, 'uploading')],
    ['removed', () => makeFile(alice, 'removed')],
    ['not there', async () => 'x'.repeat(22)],
    [
      "another message's",
      async () => {
        const id = await makeFile(alice);
        await log.append(by(alice, 'first', [id]));
        return id;
      },
    ],
  ])('is refused, and writes nothing, when one of them is %s', async (_what, unusable) => {
    const [good, bad] = [await makeFile(alice), await unusable()];
    const before = await readWholeLog(test1);
    expect(await log.append(by(alice, 'both', [good, bad]))).toEqual({ outcome: 'refused' });
    expect(await readWholeLog(test1)).toEqual(before);
    // The available file can still be attached.
    expect(await log.append(by(alice, 'good', [good]))).toMatchObject({ outcome: 'new' });
    await checkFiles();
  });

  test('leaves the other posts of its flush, and their numbers, without a gap', async () => {
    const [own, others] = [await makeFile(alice), await makeFile(bob)];
    const posts = [
      post(group, 'plain'),
      by(alice, 'stolen', [others]),
      by(bob, 'own', [others]),
      keyedPost(group, 'k', 'keyed'),
      by(alice, 'with', [own], { key: 'a', bodyHash: 'a' }),
      by(alice, 'again', [own], { key: 'a', bodyHash: 'a' }),
      by(alice, 'member', []),
    ];
    expect(await Promise.all(posts.map((each) => log.append(each)))).toEqual([
      { outcome: 'new', seq: 1, logEpoch: 0 },
      { outcome: 'refused' },
      { outcome: 'new', seq: 2, logEpoch: 0 },
      { outcome: 'new', seq: 3, logEpoch: 0 },
      { outcome: 'new', seq: 4, logEpoch: 0 },
      { outcome: 'repeat', seq: 4, logEpoch: 0, sameBody: true },
      { outcome: 'new', seq: 5, logEpoch: 0 },
    ]);
    expect(log.counts.commits).toBe(1);
    expect((await readWholeLog(test1)).map(({ text }) => text)).toEqual(['plain', 'own', 'keyed', 'with', 'member']);
    expect(await attachmentsOf(1)).toBeNull();
    await checkFiles();
  });

  test('of two of one flush that name the same file the first gets it', async () => {
    const [shared, more] = (await makeFiles(alice, 2)) as [string, string];
    const answers = await Promise.all(
      [by(alice, 'first', [shared]), by(alice, 'second', [more, shared])].map((each) => log.append(each)),
    );
    expect(answers).toEqual([{ outcome: 'new', seq: 1, logEpoch: 0 }, { outcome: 'refused' }]);
    expect(await log.append(by(alice, 'third', [more]))).toEqual({ outcome: 'new', seq: 2, logEpoch: 0 });
    await checkFiles();
  });

  test('is found by its key before its files are looked at', async () => {
    const id = await makeFile(alice);
    const keyed = by(alice, 'once', [id], { key: 'k', bodyHash: 'one' });
    expect(await log.append(keyed)).toEqual({ outcome: 'new', seq: 1, logEpoch: 0 });
    expect(await log.append(keyed)).toEqual({ outcome: 'repeat', seq: 1, logEpoch: 0, sameBody: true });
    await erase(1 as Seq);
    expect(await log.append({ ...keyed, bodyHash: 'two' })).toEqual({
      outcome: 'repeat',
      seq: 1,
      logEpoch: 0,
      sameBody: false,
    });
  });

  test('that is refused for its files leaves its key to the next one, in the same flush too', async () => {
    const [good, bad] = [await makeFile(alice), await makeFile(bob)];
    const keyed = { key: 'k', bodyHash: 'one' };
    const refused = by(alice, 'bad', [bad], keyed);
    expect(await Promise.all([log.append(refused), log.append(refused)])).toEqual([
      { outcome: 'refused' },
      { outcome: 'refused' },
    ]);
    expect(await log.append(by(alice, 'good', [good], keyed))).toEqual({ outcome: 'new', seq: 1, logEpoch: 0 });
    await checkFiles();
  });

  test('is refused with its file left free where its sender may not write', async () => {
    const [mine, yours] = [await makeFile(alice), await makeFile(bob)];
    await removeMembers(test1, group, [alice]);
    await test1.query(
      (sql) => sql`update conversation_head set archived_at = now() where conversation_id = ${group.id}`,
    );
    const posts = [by(alice, 'removed', [mine]), by(bob, 'archived', [yours])];
    expect(await Promise.all(posts.map((each) => log.append(each)))).toEqual([
      { outcome: 'refused' },
      { outcome: 'refused' },
    ]);
    expect((await fileRows()).map(({ seq }) => seq)).toEqual([null, null]);
  });

  test('counts its files against the bytes that may wait', async () => {
    const small = new MessageLog(database.intake, logOptions({ maxUnansweredBytes: 1_000 }));
    const ids = await makeFiles(alice, 10);
    await expect(small.append(by(alice, '', ids))).rejects.toThrow(IntakeFullError);
    expect(await small.append(by(alice, '', ids.slice(0, 5)))).toEqual({ outcome: 'new', seq: 1, logEpoch: 0 });
    await small.stop();
  });
});

describe('a file that somebody else holds', () => {
  /** Waits until the flush waits for the held lock, then releases the lock. */
  const meanwhile = async (held: { release(): Promise<void> }): Promise<void> => {
    await until(test1, (sql) => isWaiting(sql, 'intake'));
    await held.release();
  };

  test('and gives back as it was is attached, by its newest version', async () => {
    const id = await makeFile(alice);
    const held = await holdOpen(test1.target, (tx) => tx`update file set updated_at = now() where id = ${id}`);
    const posted = log.append(by(alice, 'hello', [id]));
    await meanwhile(held);
    expect(await posted).toEqual({ outcome: 'new', seq: 1, logEpoch: 0 });
    await checkFiles();
  });

  test.each([
    ['removes', "update file set state = 'removed'"],
    ['takes out', 'delete from file'],
    ['attaches elsewhere', 'update file set seq = 77'],
  ])('and %s is not attached, whatever the snapshot shows', async (_what, statement) => {
    const [id, other] = (await makeFiles(alice, 2)) as [string, string];
    const held = await holdOpen(test1.target, (tx) => tx.unsafe(`${statement} where id = '${id}'`));
    const posted = [by(alice, 'lost', [id]), by(alice, 'kept', [other])].map((each) => log.append(each));
    await meanwhile(held);
    expect(await Promise.all(posted)).toEqual([{ outcome: 'refused' }, { outcome: 'new', seq: 1, logEpoch: 0 }]);
  });

  test('is waited for behind the heads: a removal of the member that came before holds', async () => {
    const id = await makeFile(alice);
    const held = await holdOpen(test1.target, (tx) => tx`select from file where id = ${id} for update`);
    const posted = log.append(by(alice, 'hello', [id]));
    await until(test1, (sql) => isWaiting(sql, 'intake'));
    // The flush already holds the lock of the head: so a removal waits for the message, and not the other way round.
    const locked = await test1.query(
      (sql) => sql`select from conversation_head where conversation_id = ${group.id} for no key update skip locked`,
    );
    expect(locked).toHaveLength(0);
    await held.release();
    expect(await posted).toEqual({ outcome: 'new', seq: 1, logEpoch: 0 });
  });

  test('for longer than a lock is waited for costs its own post, and no other of the flush', async () => {
    const hasty = new MessageLog(test1.open({ lockTimeoutMs: 100 }).intake, logOptions());
    const id = await makeFile(alice);
    const held = await holdOpen(test1.target, (tx) => tx`select from file where id = ${id} for update`);
    const answers = await Promise.allSettled([
      hasty.append(by(alice, 'stuck', [id])),
      hasty.append(post(group, 'free')),
    ]);
    expect(answers).toEqual([
      { status: 'rejected', reason: expect.any(DatabaseUnavailableError) },
      { status: 'fulfilled', value: { outcome: 'new', seq: 1, logEpoch: 0 } },
    ]);
    await held.release();
    expect(await hasty.append(by(alice, 'again', [id]))).toEqual({ outcome: 'new', seq: 2, logEpoch: 0 });
    await hasty.stop();
  });
});

describe('a message that is erased', () => {
  test('gives up its files, which nobody can attach or read from then on', async () => {
    const ids = await makeFiles(alice, 3);
    await log.append(by(alice, 'two', ids.slice(0, 2)));
    await log.append(by(alice, 'one', ids.slice(2)));
    await erase(1 as Seq);
    expect(await attachmentsOf(1)).toBeNull();
    expect(await attachmentsOf(2)).toHaveLength(1);
    const states = new Map((await fileRows()).map(({ id, state }) => [id, state]));
    expect(ids.map((id) => states.get(id))).toEqual(['removed', 'removed', 'stored']);
    await checkFiles();
    // Another message cannot attach such a file.
    expect(await log.append(by(alice, 'again', ids.slice(0, 1)))).toEqual({ outcome: 'refused' });
  });
});

test('no file gets into two messages nor is lost, however flushes, erasures and the sweeper meet', async () => {
  const groups = [group, ...(await makeGroups(test1, 2))];
  await test1.query(
    (sql) => sql`
      insert into membership (conversation_id, account_id, role)
      select g, a, 'member' from unnest(${groups.slice(1).map(({ id }) => id)}::bigint[]) g, unnest(${[alice, bob]}::bigint[]) a`,
  );
  const ids = [...(await makeFiles(alice, 30)), ...(await makeFiles(bob, 30))];
  const ownerOf = (id: string): AccountId => (ids.indexOf(id) < 30 ? alice : bob);
  const logs = [database.intake, test1.open().intake].map((pool) => new MessageLog(pool, logOptions()));
  // Each run makes the same actions in the same order; the database decides which of them meet.
  let state = 7;
  const random = (below: number): number => (state = (state * 48_271) % 2_147_483_647) % below;
  const got = new Map<string, string>();
  const attach = async (own: MessageLog, caller: number): Promise<void> => {
    for (let i = 0; i < 40; i += 1) {
      const first = ids[random(ids.length)]!;
      const mine = ids.filter((id) => ownerOf(id) === ownerOf(first));
      const files = [...new Set([first, mine[random(30)]!])];
      const place = groups[random(3)]!;
      const keyed = random(2) === 0 ? {} : { key: `${caller} ${i}`, bodyHash: '-' };
      const text = `${caller} ${i}`;
      const member = post(place, text, { admission: null, senderId: ownerOf(first), attachments: files, ...keyed });
      const [posted] = await Promise.all([own.append(member), own.append(post(place, `${text} plain`))]);
      if (posted.outcome !== 'new') continue;
      for (const id of files) {
        expect(got.get(id)).toBeUndefined();
        got.set(id, `${place.id}:${posted.seq}`);
      }
    }
  };
  const sweep = async (): Promise<number> => {
    const taken = await test1.query(
      (sql) => sql`
        with loose as (
          select id from file where seq is null and state = 'stored' and hashtext(id) % 5 = 0
          order by updated_at limit 1 for update skip locked)
        update file f set state = 'removed' from loose l where f.id = l.id returning f.id`,
    );
    return taken.length;
  };
  let swept = 0;
  const erased = new Set<string>();
  const others = async (): Promise<void> => {
    for (let i = 0; i < 15; i += 1) {
      swept += await sweep();
      await test1.query((sql) => sql`update file set updated_at = now() where id = ${ids[random(60)]!}`);
      const place = [...got.values()][random(got.size || 1)];
      if (place === undefined) continue;
      const [conversationId, seq] = place.split(':').map(Number) as [ConversationId, Seq];
      await erase(seq, alice, conversationId);
      erased.add(place);
    }
  };
  await Promise.all([...logs.flatMap((own, n) => [attach(own, n * 2), attach(own, n * 2 + 1)]), others()]);
  await Promise.all(logs.map((own) => own.stop()));
  const gaps = await test1.query(
    (sql) => sql`
      select h.conversation_id from conversation_head h join message m on m.conversation_id = h.conversation_id
      group by h.conversation_id
      having count(*) <> h.last_seq or max(m.seq) <> h.last_seq or max(m.rev) > h.last_rev or count(distinct m.rev) <> h.last_seq`,
  );
  expect([...gaps]).toEqual([]);
  await checkFiles();
  const attached = (await fileRows()).filter(({ seq }) => seq !== null);
  expect(Object.fromEntries(attached.map((row) => [row.id, `${row.group}:${row.seq}`]))).toEqual(
    Object.fromEntries(got),
  );
  expect(got.size).toBeGreaterThan(20);
  expect(erased.size).toBeGreaterThan(0);
  for (const row of attached) expect(row.state).toBe(erased.has(`${row.group}:${row.seq}`) ? 'removed' : 'stored');
  expect((await fileRows()).filter((row) => row.state === 'removed' && row.seq === null)).toHaveLength(swept);
});
