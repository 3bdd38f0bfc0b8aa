import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId } from '../../../src/model/ids.ts';
import { insertAccount } from '../../../src/storage/accounts/accounts.ts';
import { readUsage, readTotalUsage, correctUsageCounts } from '../../../src/storage/files/file-usage.ts';
import {
  deleteRowReleasingUsage,
  findFile,
  findConversationFile,
  findReadableFile,
  listRemovedFiles,
  finishUpload,
  grantUploadBytes,
  insertUpload,
  listFilesOfAccount,
  type FilePosition,
  markStaleUnattachedRemoved,
  markUnattachedFileRemoved,
  recordUploadProgress,
} from '../../../src/storage/files/files.ts';
import type { Pool } from '../../../src/storage/db/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { makeGroups, makeMembers, type StoredGroup } from '../fixture.ts';

const LIMITS = { maxAccountBytes: 1_000, maxTotalBytes: 1_500, maxUnfinishedUploads: 3 };

let database: TestDatabase;
let pool: Pool;
let group: StoredGroup;
let member: AccountId;
let owner: AccountId;
let count = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = database.open().general;
  [group] = (await makeGroups(database, 1)) as [StoredGroup];
});
afterAll(() => database.drop());

beforeEach(async () => {
  await database.query(async (sql) => {
    await sql`delete from file`;
    await sql`delete from file_usage`;
  });
  count += 1;
  [owner, member] = (await makeMembers(database, group, [`owner${count}`, `member${count}`])) as [AccountId, AccountId];
});

const newId = (): string => randomBytes(16).toString('base64url');
const insert = (announcedBytes: number | null, accountId = owner, id = newId()) =>
  pool
    .transaction((tx) => insertUpload(tx, { id, ownerId: accountId, name: 'a.txt', announcedBytes }, LIMITS))
    .then((refusal) => ({ id, refusal }));
const stored = async (size: number, accountId = owner): Promise<string> => {
  const { id } = await insert(size, accountId);
  await pool.transaction((tx) => finishUpload(tx, id, { size, type: 'text/plain' }));
  return id;
};
const attach = (id: string, seq = 1) =>
  database.query((sql) => sql`update file set conversation_id = ${group.id}, seq = ${seq} where id = ${id}`);
const usage = async (): Promise<unknown> => [
  await pool.run((sql) => readUsage(sql, owner)),
  await pool.run((sql) => readTotalUsage(sql)),
];

describe('the room that files take', () => {
  test('is counted when an upload is announced, for its owner and for all, and no longer when its row goes', async () => {
    const { id } = await insert(400);
    expect(await usage()).toEqual([
      { bytes: 400, files: 1 },
      { bytes: 400, files: 1 },
    ]);
    expect(await pool.transaction((tx) => deleteRowReleasingUsage(tx, id))).toBe(true);
    expect(await pool.transaction((tx) => deleteRowReleasingUsage(tx, id))).toBe(false);
    expect(await usage()).toEqual([
      { bytes: 0, files: 0 },
      { bytes: 0, files: 0 },
    ]);
  });

  test('is bounded for an account and for all together; what is refused leaves no row and counts nothing', async () => {
    expect((await insert(1_001)).refusal).toBe('account_full');
    expect((await insert(900)).refusal).toBeNull();
    expect((await insert(101)).refusal).toBe('account_full');
    const refused = await insert(601, member);
    expect(refused.refusal).toBe('all_full');
    expect(await pool.run((sql) => findFile(sql, refused.id))).toBeNull();
    expect((await insert(600, member)).refusal).toBeNull();
    expect(await pool.run((sql) => readTotalUsage(sql))).toEqual({ bytes: 1_500, files: 2 });
  });

  test('holds for uploads at once', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => insert(400)));
    expect(all.filter(({ refusal }) => refusal === null)).toHaveLength(2);
    expect(await pool.run((sql) => readUsage(sql, owner))).toEqual({ bytes: 800, files: 2 });
  });

  test('grows with an upload that announced nothing, as far as there is room', async () => {
    const { id } = await insert(null);
    const grow = (minBytes: number, wishedBytes: number) =>
      pool.transaction((tx) => grantUploadBytes(tx, id, { minBytes, wishedBytes, limits: LIMITS }));
    expect(await grow(10, 300)).toBe(300);
    expect(await grow(301, 5_000)).toBe(1_000);
    expect(await grow(1_001, 5_000)).toBe('account_full');
    await pool.transaction((tx) => finishUpload(tx, id, { size: 350, type: 'x/y' }));
    expect(await pool.run((sql) => readUsage(sql, owner))).toEqual({ bytes: 350, files: 1 });
    expect(await grow(1, 1)).toBeNull();
  });

  test('is counted anew where it was wrong', async () => {
    await stored(100);
    await stored(50, member);
    await database.query(
      (sql) => sql`
        insert into file_usage (account_id, bytes, files) values (${group.accountId}, 7, 1), (${owner}, 9, 9), (0, 1, 1)
        on conflict (account_id) do update set bytes = excluded.bytes, files = excluded.files`,
    );
    expect(await pool.transaction((tx) => correctUsageCounts(tx))).toBe(3);
    expect(await usage()).toEqual([
      { bytes: 100, files: 1 },
      { bytes: 150, files: 2 },
    ]);
    expect(await pool.run((sql) => readUsage(sql, group.accountId))).toEqual({ bytes: 0, files: 0 });
    expect(await pool.transaction((tx) => correctUsageCounts(tx))).toBe(0);
  });
});

describe('an upload', () => {
  test('is one of a bounded number that an account has not finished', async () => {
    const first = await insert(1);
    for (let n = 0; n < 2; n += 1) expect((await insert(1)).refusal).toBeNull();
    expect((await insert(1)).refusal).toBe('too_many');
    expect(await pool.run((sql) => readUsage(sql, owner))).toEqual({ bytes: 3, files: 3 });
    await pool.transaction((tx) => finishUpload(tx, first.id, { size: 1, type: 'x/y' }));
    expect((await insert(1)).refusal).toBeNull();
  });

  test('goes forward only for the writer that knows where it is', async () => {
    const { id } = await insert(100);
    const note = (from: number, to: number, received: number) =>
      pool.run((sql) =>
        recordUploadProgress(sql, id, {
          minRowReceived: from,
          maxRowReceived: to,
          received,
          upload: { part: received },
        }),
      );
    expect(await note(0, 0, 40)).toBe(true);
    expect(await note(0, 0, 30)).toBe(false);
    expect(await note(41, 60, 80)).toBe(false);
    // This writer does not know whether the row has 0 or 40 bytes, since the answer to its earlier write was lost.
    expect(await note(0, 40, 60)).toBe(true);
    const file = await pool.run((sql) => findFile(sql, id));
    expect(file).toMatchObject({ received: 60, size: 100, state: 'uploading', upload: { part: 60 } });
  });

  test('is complete once, however often that is said, and not when it was given up', async () => {
    const { id } = await insert(100);
    const finish = () => pool.transaction((tx) => finishUpload(tx, id, { size: 80, type: 'image/png' }));
    expect([await finish(), await finish()]).toEqual([true, true]);
    expect(await pool.run((sql) => findFile(sql, id))).toMatchObject({ state: 'stored', size: 80, type: 'image/png' });
    await pool.run((sql) => markUnattachedFileRemoved(sql, id));
    expect(await finish()).toBe(false);
    expect(
      await pool.run((sql) =>
        recordUploadProgress(sql, id, { minRowReceived: 0, maxRowReceived: 99, received: 9, upload: {} }),
      ),
    ).toBe(false);
  });
});

describe('a file', () => {
  test('is read by its owner until a message has it, then by who is in the conversation, and by nobody once removed', async () => {
    const id = await stored(10);
    const outsider = await database.query((sql) =>
      insertAccount(sql, { kind: 'user', nick: `outsider${count}`, name: 'x', role: 'user' }),
    );
    const readers = async (): Promise<AccountId[]> => {
      const found: AccountId[] = [];
      for (const each of [owner, member, outsider]) {
        if ((await pool.run((sql) => findReadableFile(sql, id, each))) !== null) found.push(each);
      }
      return found;
    };
    const inGroup = () => pool.run((sql) => findConversationFile(sql, id, group.id));
    expect(await readers()).toEqual([owner]);
    expect(await inGroup()).toBeNull();
    await attach(id);
    expect(await readers()).toEqual([owner, member]);
    expect(await inGroup()).toMatchObject({ id, seq: 1 });
    await database.query((sql) => sql`update account set deactivated_at = now() where id = ${member}`);
    expect(await readers()).toEqual([owner]);
    await database.query((sql) => sql`delete from membership where account_id = ${owner}`);
    expect(await readers()).toEqual([]);
    await database.query((sql) => sql`update file set state = 'removed' where id = ${id}`);
    expect(await inGroup()).toBeNull();
  });

  test('is given up by its owner alone, and not while a message has it', async () => {
    const id = await stored(1);
    const remove = (by: AccountId | null) => pool.run((sql) => markUnattachedFileRemoved(sql, id, by));
    expect(await remove(member)).toBeNull();
    await attach(id);
    expect(await remove(owner)).toBeNull();
    await database.query((sql) => sql`update file set seq = null, conversation_id = null`);
    expect(await remove(owner)).toMatchObject({ id, state: 'removed' });
    expect(await remove(null)).toMatchObject({ id, state: 'removed' });
  });

  test('that no message took is given up after a time, an upload that stands still too, and others are not', async () => {
    const [old, taken, young] = [await stored(1), await stored(1), await stored(1)];
    const { id: still } = await insert(4);
    await attach(taken);
    await database.query((sql) => sql`update file set updated_at = now() - interval '2 days' where id <> ${young}`);
    const cutoff = new Date(Date.now() - 86_400_000);
    expect(await pool.run((sql) => markStaleUnattachedRemoved(sql, cutoff, 1))).toBe(1);
    expect(await pool.run((sql) => markStaleUnattachedRemoved(sql, cutoff, 10))).toBe(1);
    expect(await pool.run((sql) => markStaleUnattachedRemoved(sql, cutoff, 10))).toBe(0);
    const removed = await pool.run((sql) => listRemovedFiles(sql, 10));
    expect(removed.map(({ id }) => id).sort()).toEqual([old, still].sort());
  });

  test('is listed to its owner newest first, a page at a time', async () => {
    const made: string[] = [];
    for (let n = 0; n < 3; n += 1) made.push(await stored(n));
    await stored(1, member);
    const own = (before: FilePosition | null, limit: number) =>
      pool.run((sql) => listFilesOfAccount(sql, { ownerId: owner, before, limit }));
    const first = await own(null, 2);
    expect(first.map(({ id }) => id)).toEqual([made[2], made[1]]);
    expect((await own(first[1]!, 2)).map(({ id }) => id)).toEqual([made[0]]);
  });
});
