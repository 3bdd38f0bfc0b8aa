import type { Sql, Transaction } from '../db/connection.ts';
import type { BackupHeader, BackupTable } from './format.ts';

/**
 * The tables of a backup, in an order in which a table comes after those that it references. A test checks that each
 * table is here or in `EXCLUDED_TABLE_REASONS`.
 */
export const BACKED_UP_TABLES = [
  'account',
  'account_address',
  'session',
  'block',
  'conversation',
  'private_conversation',
  'conversation_head',
  'membership',
  'integration',
  'group_invite',
  'group_removal',
  'message',
  'notice',
  'hook_event',
  'idempotency_key',
  'alert',
  'expectation',
  'intake_clock',
  'reverse_hook',
  'delivery_retry',
  'delivery_attempt',
  'hook_stats',
  'device',
  'notification_setting',
  'push_cursor',
  'push_pending',
  'push_log',
  'file',
  'file_usage',
  'setting',
] as const;

/** The tables that a backup leaves out, and why. */
export const EXCLUDED_TABLE_REASONS: Readonly<Record<string, string>> = {
  schema_version: 'made by the migrations that a restore runs first',
  lease: 'says which process delivers right now; after a restore that begins anew, with epochs that nobody has held',
  node: 'says which processes run right now',
  activation: 'an address that is being proven: whoever waits for a code begins again',
  sign_in_link: 'is good for a few hours and once: the administrator makes another one',
  search_index_progress: 'after a restore the server derives everything from messages again',
  search_index: 'derived from messages',
  mention: 'derived from messages',
  refused_post: 'of the last 7 days: a program that is still refused is recorded again',
  job_lock: 'says which process cleans up right now',
};

/** The name of a day partition of `delivery_attempt`. The copy of that table includes the rows of its partitions. */
const DAY_PARTITION_PATTERN = /^delivery_attempt_(\d{8})$/;
const DEFAULT_ATTEMPT_PARTITION = 'delivery_attempt_default';

/** The tables of a database, for a backup. */
interface DatabaseTables {
  readonly tables: readonly BackupTable[];
  readonly days: readonly string[];
  /** Tables that are not Klatch's. */
  readonly nonKlatchTables: readonly string[];
}

/** Reads the tables of Klatch's schema, of any version. */
export async function readDatabaseTables(sql: Sql | Transaction): Promise<DatabaseTables> {
  const rows = await sql<{ name: string; columns: string }[]>`
    select c.relname as name, (
      select json_agg(a.attname order by a.attnum) from pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)::text as columns
    from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') order by c.relname`;
  const columnsOf = new Map(rows.map(({ name, columns }) => [name, (JSON.parse(columns) ?? []) as string[]]));
  const tables = BACKED_UP_TABLES.flatMap((name) => {
    const columns = columnsOf.get(name);
    return columns === undefined ? [] : [{ name, columns }];
  });
  const names = [...columnsOf.keys()];
  const days = names.flatMap((name) => DAY_PARTITION_PATTERN.exec(name)?.[1] ?? []);
  const klatchTables = new Set<string>([
    ...BACKED_UP_TABLES,
    ...Object.keys(EXCLUDED_TABLE_REASONS),
    DEFAULT_ATTEMPT_PARTITION,
  ]);
  return {
    tables,
    days,
    nonKlatchTables: names.filter((name) => !klatchTables.has(name) && !DAY_PARTITION_PATTERN.test(name)),
  };
}

/** The positions of identity sequences. They are never lower than an id in this transaction's snapshot. */
export async function readSequences(
  tx: Transaction,
  tables: readonly BackupTable[],
): Promise<BackupHeader['sequences']> {
  const identityColumns = await tx<{ table: string; column: string; sequence: string }[]>`
    select c.relname as table, a.attname as column, pg_get_serial_sequence(quote_ident(c.relname), a.attname) as sequence
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and a.attidentity <> ''
    where c.relnamespace = current_schema()::regnamespace
      and c.relname in (select json_array_elements_text(${JSON.stringify(tables.map(({ name }) => name))}::text::json))
    order by 1, 2`;
  const sequences: BackupHeader['sequences'] = [];
  for (const { table, column, sequence } of identityColumns) {
    const [row] = await tx<{ last: number; called: boolean }[]>`
      select last_value as last, is_called as called from ${tx.unsafe(sequence)}`;
    sequences.push({ table, column, last: row!.last, called: row!.called });
  }
  return sequences;
}

/** Sets the identity sequences of this database to positions from another database. */
export async function writeSequences(tx: Transaction, sequences: BackupHeader['sequences']): Promise<void> {
  for (const { table, column, last, called } of sequences) {
    await tx`select setval(pg_get_serial_sequence(quote_ident(${table}), ${column})::regclass, ${last}, ${called})`;
  }
}
