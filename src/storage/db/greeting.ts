import type { Sql } from './connection-target.ts';
import { FUNCTION_UNAVAILABLE_SQLSTATES, sqlState } from './database-error.ts';
import type { TimelineAndSystemId } from './server-group.ts';

const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000;

/** A server's answer to the first query of a session. */
interface Greeting extends TimelineAndSystemId {
  /** The pid of the server process that serves the session. */
  readonly pid: number;
  readonly isStandby: boolean;
  /** True: the server takes no writes, as on a standby. */
  readonly isReadOnly: boolean;
  /** Whether the server process `abandonedPid` is still busy with a transaction. */
  readonly isAbandonedBusy: boolean;
}

interface GreetingOptions {
  /** How long a statement of the session may wait for a lock. */
  readonly lockTimeoutMs: number;
  readonly forceGenericPlans: boolean;
  /** The pid of the server process of a session with the same name that was lost during work; null: there is none. */
  readonly abandonedPid: number | null;
}

/**
 * Sets up a session and reads the server's role, in one round trip. A commit that is answered before it is on disk can
 * be lost in a crash. So the session overrides the `synchronous_commit` of the database, the role or a reload.
 * Transactions that write derivable data turn `synchronous_commit` off for themselves.
 */
export async function configureSessionAndReadState(sql: Sql, options: GreetingOptions): Promise<Greeting> {
  try {
    return await ask(sql, greetingSql(options, true));
  } catch (error) {
    if (!FUNCTION_UNAVAILABLE_SQLSTATES.has(sqlState(error) ?? '')) throw error;
    return ask(sql, greetingSql(options, false));
  }
}

async function ask(sql: Sql, text: string): Promise<Greeting> {
  const [row] = await sql.unsafe<Greeting[]>(text);
  return row!;
}

/**
 * The SQL of the first query of a session. Without `forceGenericPlans`, PostgreSQL would plan a statement for each
 * length of its arrays, which took a third of the time of a small flush. The query looks up the names of settings
 * because version 11 has no `plan_cache_mode`. A standby has no log of its own, and so no timeline. The query makes the
 * settings, since pgbouncer refuses settings that it does not know at the start of a session.
 *
 * A process that has written keeps its transaction id until its commit is complete, wherever the commit waits. A
 * process that waits for its client has not noticed that its session ended: its transaction will never commit, so it
 * does not count as busy.
 */
function greetingSql(options: GreetingOptions, asksClusterState: boolean): string {
  const { forceGenericPlans, abandonedPid, lockTimeoutMs } = options;
  const clusterStateSql = asksClusterState
    ? `case when not pg_is_in_recovery()
         then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline,
       (select system_identifier::text from pg_control_system()) as "systemId"`
    : 'null::int as timeline, null as "systemId"';
  return `
    select set_config(name, case name
        when 'plan_cache_mode' then 'force_generic_plan'
        when 'lock_timeout' then '${lockTimeoutMs}'
        when 'idle_in_transaction_session_timeout' then '${IDLE_IN_TRANSACTION_TIMEOUT_MS}'
        when 'default_transaction_isolation' then 'read committed'
        else case when setting in ('off', 'local') then 'on' else setting end
      end, false),
      pg_backend_pid() as pid, pg_is_in_recovery() as "isStandby",
      current_setting('transaction_read_only') = 'on' as "isReadOnly", ${clusterStateSql},
      ${abandonedPid === null ? 'false' : isBusySql(abandonedPid)} as "isAbandonedBusy"
    from pg_settings
    where name in ('synchronous_commit', 'lock_timeout', 'idle_in_transaction_session_timeout',
        'default_transaction_isolation')
      or (name = 'plan_cache_mode' and ${String(forceGenericPlans)})`;
}

function isBusySql(pid: number): string {
  return `exists (select from pg_stat_activity where pid = ${pid}
    and application_name = current_setting('application_name')
    and backend_xid is not null and wait_event_type is distinct from 'Client')`;
}
