import type { PostedExpectation } from '../../model/expectation.ts';
import type { Fragment, Sql, Transaction } from '../db/connection.ts';

/**
 * The most by which one round of the expectation monitor advances the intake clock, which counts the time in which
 * nodes could accept posts. So a running clock lags by at most this.
 */
export const MAX_INTAKE_CLOCK_STEP_MS = 10_000;

/** The time of the intake clock in ms, as SQL; 0 if the clock was never advanced. */
export const intakeClockMs = (sql: Sql | Transaction): Fragment => (sql as Sql)`
  coalesce((select c.open_ms from intake_clock c), 0)`;

/**
 * The time of the intake clock, in ms, at which an expectation `e` is due that begins to wait now; as SQL. The clock
 * may lag by one step, so a step is added: the group gets the notice too late rather than too early.
 */
export const dueAtIntakeClockMs = (sql: Sql | Transaction): Fragment => (sql as Sql)`
  ${intakeClockMs(sql)} + e.within_s * 1000::bigint + ${MAX_INTAKE_CLOCK_STEP_MS}::int`;

/** The columns of an expectation `e` that a sign of life (a post with its key) sets. */
export const signOfLifeAssignments = (sql: Sql | Transaction): Fragment => (sql as Sql)`
  last_post_at = clock_timestamp(), due_ms = ${dueAtIntakeClockMs(sql)},
  state = case e.state when 'overdue' then 'returned' else e.state end`;

/**
 * A CTE after `numbered` that records posts as signs of life of expectations, in the commit of their messages. It locks
 * the rows of the expectations after the head, like all writers of these rows, so that it reads their newest version.
 * The fragment is empty if no post names an expectation.
 */
export function signsOfLifeCte(
  sql: Sql,
  posts: readonly { readonly expectation?: Pick<PostedExpectation, 'key'> }[],
): Fragment {
  const signs = posts.flatMap(({ expectation }, index) =>
    expectation === undefined ? [] : [{ ord: index + 1, key: expectation.key }],
  );
  if (signs.length === 0) return sql``;
  return sql`
    , sign_of_life as (
      update expectation e set ${signOfLifeAssignments(sql)}
      from (
        select distinct n.conversation_id, u.key
        from unnest(${signs.map(({ ord }) => ord)}::int[], ${signs.map(({ key }) => key)}::text[]) as u(ord, key)
        join numbered n on n.ord = u.ord
      ) s
      where e.conversation_id = s.conversation_id and e.key = s.key
    )`;
}
