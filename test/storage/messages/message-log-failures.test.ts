import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Sql } from '../../../src/storage/db/connection.ts';
import { DatabaseUnavailableError, CommitUnknownError } from '../../../src/storage/db/database-error.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import type { PostResult } from '../../../src/storage/messages/write-posts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { DatabaseProxy } from '../../support/database-proxy.ts';
import { HalfOpenProxy } from '../../support/half-open-proxy.ts';
import {
  holdOpen,
  isWaiting,
  keyedPost,
  lockHead,
  logOptions,
  makeGroups,
  post,
  readWholeLog,
  until,
  type StoredGroup,
} from '../fixture.ts';

let database: TestDatabase;
const logs: MessageLog[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
});

afterEach(async () => {
  for (const log of logs.splice(0)) {
    await log.stop();
    expect(log.depth).toBe(0);
  }
  await database.drop();
});

/** A message log on connections of its own. Its lock time-out is short, so that the tests are short. */
function openLog(options: Parameters<typeof logOptions>[0] = {}, changes: Parameters<TestDatabase['open']>[0] = {}) {
  const log = new MessageLog(database.open({ lockTimeoutMs: 100, ...changes }).intake, logOptions(options));
  logs.push(log);
  return log;
}

/** The result of a post: its seq, or the name of its error. */
async function ending(answer: Promise<PostResult>): Promise<number | string> {
  try {
    const posted = await answer;
    return posted.outcome === 'new' ? posted.seq : posted.outcome;
  } catch (error) {
    return (error as Error).name;
  }
}

const texts = async (): Promise<string[]> => (await readWholeLog(database)).map((message) => message.text);

/** Makes the insertion of a message fail, `times` times or always, with this SQLSTATE. */
async function failInserts(sql: Sql, state: string, times: number): Promise<void> {
  await sql.unsafe(`
    create sequence failures;
    create function fail() returns trigger language plpgsql as $$ begin
      if nextval('failures') <= ${times} then raise exception 'made for a test' using errcode = '${state}'; end if;
      return null;
    end $$;
    create trigger fail after insert on message for each statement execute function fail()`);
}

describe('a conversation that somebody else holds locked', () => {
  test('waits apart while the posts of the others flow, and is written in order once it is free', async () => {
    const [locked, open] = (await makeGroups(database, 2)) as [StoredGroup, StoredGroup];
    const log = openLog();
    const lock = await lockHead(database.target, locked.id);
    const waiting = [log.append(post(locked, '1')), log.append(post(locked, '2'))];
    const first = log.append(post(open, 'a'));
    expect(await ending(first)).toBe(1);
    waiting.push(log.append(post(locked, '3')));
    for (const text of ['b', 'c']) await log.append(post(open, text));
    expect(await texts()).toEqual(['a', 'b', 'c']);
    expect(log.depth).toBe(3);

    await lock.release();
    waiting.push(log.append(post(locked, '4')));
    expect(await Promise.all(waiting.map(ending))).toEqual([1, 2, 3, 4]);
    expect(await texts()).toEqual(['1', '2', '3', '4', 'a', 'b', 'c']);
  });

  test('is rejected at the deadline of its posts when it is not set free, and nothing of it is written', async () => {
    const [locked, open] = (await makeGroups(database, 2)) as [StoredGroup, StoredGroup];
    const log = openLog({ maxQueueWaitMs: 400 });
    const lock = await lockHead(database.target, locked.id);
    const [ended, other] = await Promise.all([
      ending(log.append(post(locked, 'x'))),
      ending(log.append(post(open, 'a'))),
    ]);
    expect([ended, other]).toEqual(['DatabaseUnavailableError', 1]);
    await lock.release();
    expect(await ending(log.append(post(locked, 'y')))).toBe(1);
    expect(await texts()).toEqual(['y', 'a']);
  });

  test('is come back to even while other posts never stop coming', async () => {
    const [locked, open] = (await makeGroups(database, 2)) as [StoredGroup, StoredGroup];
    const log = openLog({ maxFlushPosts: 1 });
    const lock = await lockHead(database.target, locked.id);
    const waiting = ending(log.append(post(locked, 'x')));
    await log.append(post(open, 'first'));
    const traffic = { over: false };
    // Two callers post in loops, so that one post always waits in the queue.
    const keepPosting = async (): Promise<void> => {
      while (!traffic.over) await log.append(post(open, 'more'));
    };
    const both = [keepPosting(), keepPosting()];
    await lock.release();
    expect(await waiting).toBe(1);
    traffic.over = true;
    await Promise.all(both);
  });

  test('keeps its order when a poisonous post is in the same flush', async () => {
    const [locked, open] = (await makeGroups(database, 2)) as [StoredGroup, StoredGroup];
    const log = openLog();
    // The post that the database cannot store fails before the flush waits for the lock: PostgreSQL binds the values of
    // a statement first.
    const lock = await lockHead(database.target, locked.id);
    const posts = [
      post(locked, '1'),
      post(locked, '2'),
      post(locked, '3'),
      post(open, 'nul \u0000'),
      post(locked, '4'),
    ];
    const answers = Promise.all(posts.map((p) => ending(log.append(p))));
    await until(database, (sql) => isWaiting(sql, 'intake'));
    const late = ending(log.append(post(locked, '5')));
    // The lock is released only after the log has split the first half of the posts off. By then it writes the second
    // half.
    expect(await ending(log.append(post(open, 'a')))).toBe(1);
    await lock.release();
    expect(await answers).toEqual([1, 2, 3, 'PoisonMessageError', 4]);
    expect(await late).toBe(5);
    expect(await texts()).toEqual(['1', '2', '3', '4', '5', 'a']);
  });

  test('is rejected at the stop, which does not wait for it', async () => {
    const [locked] = await makeGroups(database, 1);
    const log = openLog();
    const lock = await lockHead(database.target, locked!.id);
    const waiting = ending(log.append(post(locked!, 'x')));
    await until(database, (sql) => isWaiting(sql, 'intake'));
    await log.stop();
    expect(await waiting).toBe('DatabaseUnavailableError');
    await lock.release();
    expect(await texts()).toEqual([]);
  });
});

describe('a failure after which PostgreSQL has rolled back', () => {
  test.each(['40001', '40P01'])('%s is repeated, and every post written once', async (state) => {
    const [group] = await makeGroups(database, 1);
    await database.query((sql) => failInserts(sql, state, 3));
    const log = openLog();
    expect(await Promise.all(['a', 'b'].map((text) => ending(log.append(post(group!, text)))))).toEqual([1, 2]);
    expect(await texts()).toEqual(['a', 'b']);
  });

  test('40001 again and again is given up: nothing was written', async () => {
    const [group] = await makeGroups(database, 1);
    await database.query((sql) => failInserts(sql, '40001', 5));
    const log = openLog();
    expect(await ending(log.append(post(group!, 'a')))).toBe('DatabaseUnavailableError');
    await until(database, async () => (await ending(log.append(post(group!, 'b')))) === 1);
    expect(await texts()).toEqual(['b']);
  });

  test('a full disk rejects the flush and what waits as not written, and the next post works', async () => {
    const [group] = await makeGroups(database, 1);
    await database.query((sql) => failInserts(sql, '53100', 1));
    const log = openLog({ maxFlushPosts: 2 });
    const answers = ['a', 'b', 'c'].map((text) => ending(log.append(post(group!, text))));
    expect(await Promise.all(answers)).toEqual([
      'DatabaseUnavailableError',
      'DatabaseUnavailableError',
      'DatabaseUnavailableError',
    ]);
    expect(await texts()).toEqual([]);
    await until(database, async () => (await ending(log.append(post(group!, 'd')))) === 1);
    expect(await texts()).toEqual(['d']);
  });

  test('a whole table that is locked rejects the posts as not written', async () => {
    const [group] = await makeGroups(database, 1);
    const log = openLog({}, { lockTimeoutMs: 50 });
    const lock = await holdOpen(database.target, (tx) => tx`lock table conversation_head in access exclusive mode`);
    expect(await ending(log.append(post(group!, 'a')))).toBe('DatabaseUnavailableError');
    await lock.release();
    const other = await holdOpen(database.target, (tx) => tx`lock table message in access exclusive mode`);
    expect(await ending(openLog({}, { lockTimeoutMs: 50 }).append(post(group!, 'b')))).toBe('DatabaseUnavailableError');
    await other.release();
    expect(await texts()).toEqual([]);
  });

  test('one key in two logs at once is posted once, and both are answered with its seq', async () => {
    const [group] = await makeGroups(database, 1);
    const two = [openLog({}, { lockTimeoutMs: 5_000 }), openLog({}, { lockTimeoutMs: 5_000 })];
    // The lock makes both statements take their snapshots before either has written the key.
    const lock = await lockHead(database.target, group!.id);
    const answers = two.map((log) => log.append(keyedPost(group!, 'k', 'one')));
    await until(database, (sql) => isWaiting(sql, 'intake', 2));
    await lock.release();
    const outcomes = await Promise.all(answers);
    expect(outcomes).toContainEqual({ outcome: 'new', seq: 1, logEpoch: 0 });
    expect(outcomes).toContainEqual({ outcome: 'repeat', seq: 1, logEpoch: 0, sameBody: true });
    expect(await texts()).toEqual(['one']);
  });
});

describe('a connection that is lost in the middle of a flush', () => {
  test('by a server that stops holds the flush and what waits, since both are known not to be written', async () => {
    const [group] = await makeGroups(database, 1);
    const log = openLog({ maxFlushPosts: 1 }, { lockTimeoutMs: 5_000 });
    const lock = await lockHead(database.target, group!.id);
    const answers = ['a', 'b'].map((text) => ending(log.append(post(group!, text))));
    await until(database, (sql) => isWaiting(sql, 'intake'));
    await database.query(
      (sql) => sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
        and application_name = 'klatch intake'`,
    );
    await lock.release();
    expect(await Promise.all(answers)).toEqual([1, 2]);
    expect(await ending(log.append(post(group!, 'c')))).toBe(3);
    expect(await texts()).toEqual(['a', 'b', 'c']);
    expect(log.counts.outageRefusals).toBe(0);
  });

  test('leaves the outcome of the flush unknown and holds what waits, and the log recovers by itself', async () => {
    const [group] = await makeGroups(database, 1);
    const proxy = await DatabaseProxy.start(database.target);
    const log = openLog({ maxFlushPosts: 1 }, { ...proxy.address, lockTimeoutMs: 5_000 });
    const lock = await lockHead(database.target, group!.id);
    const answers = ['a', 'b'].map((text) => ending(log.append(post(group!, text))));
    await until(database, (sql) => isWaiting(sql, 'intake'));
    proxy.cut();
    // PostgreSQL has not noticed that its client is gone, so it may still write this post after the release of the
    // lock.
    expect(await answers[0]).toBe('CommitUnknownError');
    await lock.release();
    const seq = await answers[1];
    // PostgreSQL may write the post of the lost flush before the other one, after it, or not at all.
    const possible = seq === 1 ? [['b'], ['b', 'a']] : [['a', 'b']];
    expect(possible).toContainEqual(await texts());
    await log.stop();
    await proxy.stop();
  });

  test('behind a path that swallows packets ends at the deadline, and posts work when the path is back', async () => {
    const [group] = await makeGroups(database, 1);
    const proxy = await HalfOpenProxy.start(database.target);
    const log = openLog(
      { maxFlushPosts: 1, maxQueueWaitMs: 500 },
      { ...proxy.address, flushTimeoutMs: 3_000, connectTimeoutMs: 3_000 },
    );
    expect(await ending(log.append(post(group!, 'a')))).toBe(1);
    proxy.mode = 'swallow';
    const answers = ['b', 'c'].map((text) => log.append(post(group!, text)));
    await expect(answers[0]).rejects.toThrow(CommitUnknownError);
    await expect(answers[1]).rejects.toThrow(DatabaseUnavailableError);
    // The database was away for longer than any post may wait. So a new post is refused at once, before its deadline.
    const refusals = log.counts.outageRefusals;
    await expect(log.append(post(group!, 'd'))).rejects.toThrow(DatabaseUnavailableError);
    expect(log.counts.outageRefusals).toBe(refusals + 1);
    proxy.mode = 'pass';
    await until(database, async () => (await ending(log.append(post(group!, 'e')))) === 2);
    expect(await texts()).toEqual(['a', 'e']);
    await log.stop();
    await proxy.stop();
  });
});
