import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import type { TestGroup } from '../support/server.ts';

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

/** Moves the intake clock, which counts the time in which nodes could accept posts, forward by this time. */
export async function passOpenTime(database: TestDatabase, ms: number): Promise<void> {
  await database.query(
    (sql) => sql`
      insert into intake_clock (open_ms, advanced_at) values (${ms}, clock_timestamp())
      on conflict (is_only_row) do update set open_ms = intake_clock.open_ms + excluded.open_ms`,
  );
}

export async function readIntakeClock(database: TestDatabase): Promise<number> {
  const [row] = await database.query(
    (sql) => sql<{ ms: number }[]>`select coalesce((select open_ms from intake_clock), 0) as ms`,
  );
  return row!.ms;
}

/** The messages about expectations in a group, in order. */
export async function saidLines(database: TestDatabase, { id }: Pick<TestGroup, 'id'>): Promise<string[]> {
  const rows = await database.query(
    (sql) => sql<{ text: string }[]>`
      select text from message where conversation_id = ${id} and (text like '🔴%' or text like '🟢%') order by seq`,
  );
  return rows.map(({ text }) => text);
}

/** The messages about expectations in a group. Waits until there are `count` of them. */
export const saidLinesOnceThereAre = (
  database: TestDatabase,
  group: Pick<TestGroup, 'id'>,
  count: number,
): Promise<string[]> =>
  eventually(
    () => saidLines(database, group),
    (lines) => lines.length >= count,
  );

/** The time of the last post with this key, in the format of the messages about expectations. */
export async function momentOfLastPost(
  database: TestDatabase,
  { id }: Pick<TestGroup, 'id'>,
  key: string,
): Promise<string> {
  const [row] = await database.query(
    (sql) => sql<{ at: Date }[]>`
      select coalesce(last_post_at, set_at) as at from expectation where conversation_id = ${id} and key = ${key}`,
  );
  return `${row!.at.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
