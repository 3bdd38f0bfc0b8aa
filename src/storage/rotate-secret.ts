import { DEVICE_TOKEN_SEAL_PURPOSE } from '../model/device.ts';
import { INCOMING_SECRET_SEAL_PURPOSE } from '../model/incoming-secret.ts';
import type { Transaction } from './db/connection.ts';
import { SCHEMA_LOCK_KEY } from './db/migrate.ts';
import type { Pool } from './db/pool.ts';
import { CANARY_NAME, WrongSecretError, type Sealer } from './db/sealed.ts';

/** A server uses this database right now. */
export class DatabaseInUseError extends Error {
  override readonly name = 'DatabaseInUseError';
}

/** A column of sealed values, and the purpose that they were sealed for. */
interface SealedColumn {
  readonly table: string;
  /** The column with the table's primary key, a number. */
  readonly idColumn: string;
  readonly column: string;
  readonly authenticatedPurpose: string;
}

/** Every column of sealed values in the schema; a test compares the list with the database. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  {
    table: 'integration',
    idColumn: 'conversation_id',
    column: 'token_sealed',
    authenticatedPurpose: 'integration-token',
  },
  {
    table: 'integration',
    idColumn: 'conversation_id',
    column: 'incoming_secret_sealed',
    authenticatedPurpose: INCOMING_SECRET_SEAL_PURPOSE,
  },
  { table: 'group_invite', idColumn: 'id', column: 'token_sealed', authenticatedPurpose: 'group-invite' },
  { table: 'device', idColumn: 'id', column: 'token_sealed', authenticatedPurpose: DEVICE_TOKEN_SEAL_PURPOSE },
  { table: 'reverse_hook', idColumn: 'id', column: 'secret_sealed', authenticatedPurpose: 'hook-secret' },
  { table: 'reverse_hook', idColumn: 'id', column: 'old_secret_sealed', authenticatedPurpose: 'hook-secret' },
];

/** The sealer of the old secret, which opens the values, and that of the new one. */
interface OldAndNewSealer {
  readonly oldSealer: Sealer;
  readonly newSealer: Sealer;
}

/** The maximum number of rows in memory at a time. */
const BATCH_ROWS = 500;
/**
 * The time-out of a rotation. 100,000 hooks took 17 s on a busy machine of two cores; a slow disk may take much longer.
 */
const ROTATION_TIMEOUT_MS = 30 * 60_000;

/**
 * Reseals all values of one secret with another one, the canary too. Resolves with the number of resealed values by the
 * name of their purpose. It leaves values alone that the new secret opens already, so that it may be called again. It
 * works in one transaction: if the process ends at any moment before the commit, nothing has changed. Rejects with
 * WrongSecretError for a value that neither secret opens, and with DatabaseInUseError while a server uses the database.
 */
export async function rotateSealedCountingByPurpose(
  pool: Pool,
  secrets: OldAndNewSealer,
): Promise<ReadonlyMap<string, number>> {
  return pool.transaction(async (tx) => {
    await requireNoRunningServer(tx);
    // The canary comes first, because it detects a wrong secret before anything is written.
    await rotateCanary(tx, secrets);
    const resealedCounts = new Map<string, number>();
    for (const column of SEALED_COLUMNS) {
      const count = await rotateColumn(tx, column, secrets);
      resealedCounts.set(column.authenticatedPurpose, (resealedCounts.get(column.authenticatedPurpose) ?? 0) + count);
    }
    return resealedCounts;
  }, ROTATION_TIMEOUT_MS);
}

/**
 * Rejects with DatabaseInUseError if another node, with another data directory and lock, uses the same database: it
 * would continue with the old secret. A running node has a session for its leases. A starting node waits for the lock
 * of migrations, and then finds the new canary.
 */
export async function requireNoRunningServer(tx: Transaction): Promise<void> {
  await tx`select pg_advisory_xact_lock(${SCHEMA_LOCK_KEY})`;
  const [row] = await tx<{ count: number }[]>`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and application_name = 'klatch lease'`;
  if (row!.count === 0) return;
  throw new DatabaseInUseError(
    'A Klatch server with another data directory uses this database. Stop it first; nothing was changed.',
  );
}

async function rotateCanary(tx: Transaction, secrets: OldAndNewSealer): Promise<void> {
  const [row] = await tx<{ value: string }[]>`select value from setting where name = ${CANARY_NAME} for update`;
  // No server has used this database yet, so it has no canary.
  if (row === undefined) return;
  const neitherSecretOpensMessage =
    'neither the old secret that was given nor the one in server.conf opens this database';
  const sealed = sealWithNewSecret(
    { authenticatedPurpose: CANARY_NAME, sealed: row.value, neitherSecretOpensMessage },
    secrets,
  );
  if (sealed !== null) await tx`update setting set value = ${sealed} where name = ${CANARY_NAME}`;
}

async function rotateColumn(tx: Transaction, sealedColumn: SealedColumn, secrets: OldAndNewSealer): Promise<number> {
  const { table, idColumn: id, column, authenticatedPurpose } = sealedColumn;
  let count = 0;
  for (let afterId = 0; ;) {
    const rows = await tx<{ id: number; sealed: string }[]>`
      select ${tx(id)} as id, ${tx(column)} as sealed from ${tx(table)}
      where ${tx(id)} > ${afterId} and ${tx(column)} is not null
      order by ${tx(id)} limit ${BATCH_ROWS} for no key update`;
    const resealed = rows.flatMap((row) => {
      const neitherSecretOpensMessage = `${column} of ${table} with ${id} ${row.id} opens neither with the old secret nor with the new one`;
      const sealed = sealWithNewSecret(
        { authenticatedPurpose, sealed: row.sealed, neitherSecretOpensMessage },
        secrets,
      );
      return sealed === null ? [] : [{ id: row.id, sealed }];
    });
    const last = rows.at(-1)?.id ?? afterId;
    if (resealed.length > 0) {
      // The range of ids keeps the planner from reading the whole table once for each batch.
      await tx`
        update ${tx(table)} as t set ${tx(column)} = v.sealed
        from unnest(${resealed.map((each) => each.id)}::bigint[], ${resealed.map((each) => each.sealed)}::text[]) as v (id, sealed)
        where ${tx(`t.${id}`)} = v.id and ${tx(`t.${id}`)} > ${afterId} and ${tx(`t.${id}`)} <= ${last}`;
    }
    count += resealed.length;
    if (rows.length < BATCH_ROWS) return count;
    afterId = last;
  }
}

/**
 * Seals a value with the new secret; null if the new secret opens it already. If neither secret opens it, the error
 * contains `neitherSecretOpensMessage`.
 */
function sealWithNewSecret(
  value: { authenticatedPurpose: string; sealed: string; neitherSecretOpensMessage: string },
  { oldSealer: from, newSealer: to }: OldAndNewSealer,
): string | null {
  const { authenticatedPurpose, sealed, neitherSecretOpensMessage } = value;
  if (tryOpen(to, authenticatedPurpose, sealed) !== null) return null;
  const plain = tryOpen(from, authenticatedPurpose, sealed);
  if (plain === null) throw new WrongSecretError(`${neitherSecretOpensMessage}; nothing was changed`);
  return to.seal(authenticatedPurpose, plain);
}

function tryOpen(sealer: Sealer, authenticatedPurpose: string, sealed: string): string | null {
  try {
    return sealer.open(authenticatedPurpose, sealed);
  } catch (error) {
    if (error instanceof WrongSecretError) return null;
    throw error;
  }
}
