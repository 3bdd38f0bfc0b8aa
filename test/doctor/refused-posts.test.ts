import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  evaluateRefusedPosts,
  MAX_LISTED_REFUSING_GROUPS,
  RECENTLY_REFUSED_HOURS,
} from '../../src/doctor/refused-posts.ts';
import type { CheckResult } from '../../src/doctor/finding.ts';
import { reportRefusedPosts } from '../../src/storage/groups/refused-post-report.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.query(
    (sql) => sql`insert into conversation (kind, title) select 'group', 'G' from generate_series(1, 8)`,
  );
});
afterAll(() => database.drop());

interface RefusalRow {
  readonly hoursAgo?: number;
  readonly posts?: number;
  readonly userAgent?: string | null;
}

/** Inserts refused posts of a group. Each `sentence` has a row of its own. */
function refuse(
  group: number,
  sentence: string,
  { hoursAgo = 0, posts = 1, userAgent = 'Some/1.0' }: RefusalRow = {},
): Promise<unknown> {
  return database.query(
    (sql) => sql`
      insert into refused_post (conversation_id, fingerprint, user_agent, code, sentence, posts, first_at, last_at)
      values (${group}, ${sentence}, ${userAgent}, 'invalid_input', ${sentence}, ${posts},
        '2026-11-20T08:00:00Z', now() - ${hoursAgo} * interval '1 hour')`,
  );
}

async function examine(): Promise<readonly CheckResult[]> {
  const bounds = { withinHours: RECENTLY_REFUSED_HOURS, maxGroups: MAX_LISTED_REFUSING_GROUPS, timeoutMs: 20_000 };
  return evaluateRefusedPosts(await reportRefusedPosts(database.target, bounds));
}

test('groups are found that refused posts in the last day, with how many, and why and whose the newest one was', async () => {
  await refuse(1, 'too old', { hoursAgo: 25 });
  expect(await examine()).toEqual([{ level: 'ok', found: 'no group refused a post in the last 24 hours', todo: null }]);
  await refuse(1, 'an earlier one', { hoursAgo: 2, posts: 40 });
  await refuse(1, 'the newest one', { hoursAgo: 1, posts: 2 });
  await refuse(2, 'of nobody', { hoursAgo: 3, userAgent: null });
  const at = '\\d{4}-\\d{2}-\\d{2}T[\\d:.]+Z';
  const pattern = (rest: string): unknown => expect.stringMatching(new RegExp(rest.replace('<at>', at)));
  const todo = (group: number): unknown => expect.stringContaining(`"klatch group info ${group}"`);
  expect(await examine()).toEqual([
    {
      level: 'warning',
      found: pattern(
        '^group 1 refused 42 posts since 2026-11-20T08:00:00.000Z, the newest at <at> from "Some/1.0": the newest one$',
      ),
      todo: todo(1),
    },
    {
      level: 'warning',
      found: pattern('^group 2 refused 1 post since .* without a User-Agent: of nobody$'),
      todo: todo(2),
    },
  ]);
});

test('five of them are listed, and the others counted', async () => {
  for (let group = 3; group <= 8; group += 1) await refuse(group, 'x');
  const found = await examine();
  expect(found).toHaveLength(MAX_LISTED_REFUSING_GROUPS + 1);
  expect(found.at(-1)).toMatchObject({ level: 'warning', found: '3 more groups likewise' });
});
