import { expect } from '@jest/globals';
import type { Rev, Seq } from '../../../src/model/ids.ts';
import { BACKED_UP_TABLES } from '../../../src/storage/backup/tables.ts';
import type { Sql } from '../../../src/storage/db/connection.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import { ensureAttemptPartitions } from '../../../src/storage/retention/retention.ts';
import { createOrCheckCanary } from '../../../src/storage/db/sealed.ts';
import type { TestDatabase } from '../../support/database.ts';
import { insertFile } from '../../support/files.ts';
import { keyedPost, logOptions, makeGroups, makeHook, post, readWholeLog } from '../fixture.ts';
import { describeSchema } from '../schema.ts';
import { sealer } from './fixture.ts';

/** Texts with characters that the format of a backup could confuse. */
const TEXTS = ['plain', 'tab\tand\nline\r\n', '\\N', '\\.', 'ПРИВЕТ 👋', '"quoted", {braces}', '\u0001\u007f', ' '];
const GROUPS = 3;
/** The number of messages in a filled database. */
export const MESSAGES = TEXTS.length * GROUPS + 2;
/** The cards of the message with a key. */
const CARDS = [{ title: 'Über \\N\t1', fields: [{ name: '\\.', value: '"quoted"\n' }], mood: 'danger' }];
/** The attachment of the first group's last message. */
export const ATTACHED = {
  id: 'Zm9vYmFyYmF6cXV4MTIzNA',
  name: 'Über \\N\t1.pdf',
  type: 'application/pdf',
  size: 12_345,
};

/**
 * Fills a database with groups that have messages, keys, an alert, hooks and retries. One message has a file and one
 * has a card. The delivery log has attempts of today and of a day long ago. One node has a lease.
 */
export async function fillDatabase(database: TestDatabase): Promise<void> {
  const groups = await makeGroups(database, GROUPS);
  const log = new MessageLog(database.open().intake, logOptions());
  for (const text of TEXTS) for (const group of groups) await log.append(post(group, text));
  await log.append({ ...keyedPost(groups[0]!, 'key', 'once'), cardsJson: JSON.stringify(CARDS) });
  await insertFile({ database }, groups[0]!.accountId, ATTACHED);
  await log.append(post(groups[0]!, '', { attachments: [ATTACHED.id] }));
  await log.stop();
  const hook = await makeHook(database, groups[0]!, {
    startAfterSeq: 2 as Seq,
    startAfterRev: 2 as Rev,
    events: ['message.updated'],
  });
  await makeHook(database, groups[1]!, { skip: ['webhook', 'bot'], order: 'none' });
  await database.query(async (sql) => {
    await createOrCheckCanary(sql, sealer);
    await sql.begin((tx) => ensureAttemptPartitions(tx, Date.now()));
    await sql`update reverse_hook set cursor = 5, failures = 3, next_attempt_at = now() where id = ${hook}`;
    await sql`insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at) values ((select conversation_id from reverse_hook where id = ${hook}), ${hook}, 3, 3, 2, now())`;
    await sql`
      insert into hook_event (conversation_id, rev, after_seq, seq, kind, actor_id, at)
      values (${groups[0]!.id}, 3, 2, 1, 'message.updated', ${groups[0]!.accountId}, now())`;
    const alerts = [{ fingerprint: 'tab\t\\N', startsAt: '2026-11-23T10:00:00.000Z', state: 'firing' }];
    await sql`
      insert into alert (conversation_id, source, key, seq, state, since, alerts, version)
      values (${groups[0]!.id}, 'test', 'tab\tkey', 1, 'firing', now(), ${sql.json(alerts)}, 7)`;
    await sql`
      insert into expectation (conversation_id, key, within_s, state, due_ms, last_post_at)
      values (${groups[0]!.id}, 'tab\tkey', 93600, 'overdue', 7, now()), (${groups[0]!.id}, 'waits', 60, 'waiting', null, null)`;
    await sql`insert into intake_clock (open_ms, advanced_at) values (12345, now())`;
    await sql`
      insert into delivery_attempt (conversation_id, hook_id, seq, last_seq, attempt, at, outcome, duration_ms)
      select (select conversation_id from reverse_hook where id = ${hook}), ${hook}, 3, 3, n, at, 'failed', 12
      from (values (1, now()), (2, '2020-01-01'::timestamptz)) as v (n, at)`;
    await sql`update lease set holder = 'somebody', epoch = 7, expires_at = now() + interval '1 hour'`;
    await sql`insert into node (id, expires_at) values ('somebody', now() + interval '1 hour')`;
  });
}

/**
 * The row that a restore adds: a restored database is an installation of its own, and its next start assigns its store
 * of files.
 */
const UNASSIGNED_STORE = '(store_id,unassigned)';

/** Every row of a table as text, sorted, without the row that a restore adds. */
export async function rowsOf(database: TestDatabase, table: string): Promise<string[]> {
  const rows = await database.query((sql: Sql) => sql.unsafe(`select t::text as row from ${table} t`));
  return rows
    .map((row) => row['row'] as string)
    .filter((row) => row !== UNASSIGNED_STORE)
    .sort();
}

/**
 * The schema without the names of foreign keys: PostgreSQL 11 names a key of several columns only after the first one.
 */
async function schemaOf(database: TestDatabase): Promise<string> {
  return (await database.query(describeSchema)).replaceAll(/ \S+ FOREIGN KEY /g, ' FOREIGN KEY ');
}

/** Checks that both databases have the same schema and the same rows, and that the message log has no gaps. */
export async function expectSame(one: TestDatabase, other: TestDatabase): Promise<void> {
  expect(await schemaOf(other)).toBe(await schemaOf(one));
  for (const table of BACKED_UP_TABLES) expect(await rowsOf(other, table)).toEqual(await rowsOf(one, table));
  expect((await readWholeLog(other)).length).toBe(MESSAGES);
}
