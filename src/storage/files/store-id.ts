import { randomBytes } from 'node:crypto';
import type { Sql, Transaction } from '../db/connection.ts';
import type { Pool } from '../db/pool.ts';

/** The setting with the id of the store that holds this database's files. */
const STORE_ID_NAME = 'store_id';
const STORE_ID_BYTES = 16;
/** The setting with the id that the store had before the database was restored. */
const FORMER_STORE_ID_NAME = 'former_store_id';
/** The value of the setting `store_id` until a node has marked its store. */
export const UNASSIGNED_STORE_ID = 'unassigned';
/**
 * The time-out of the transaction that assigns the store id: other nodes that start wait at most this long. It is
 * shorter than the time after which PostgreSQL ends an idle transaction.
 */
const STORE_ID_ASSIGN_TIMEOUT_MS = 25_000;

/**
 * The store id, in hexadecimal digits. `unassigned`: the next start marks its store, whatever id the store has. Null:
 * no server started yet.
 */
export async function findStoreId(sql: Sql | Transaction): Promise<string | null> {
  const [row] = await sql<{ value: string }[]>`select value from setting where name = ${STORE_ID_NAME}`;
  return row?.value ?? null;
}

/** The current store id, and the one before the last restore; null: there is none. */
export async function findStoreIds(sql: Sql | Transaction): Promise<{ current: string | null; former: string | null }> {
  const rows = await sql<{ name: string; value: string }[]>`
    select name, value from setting where name in (${STORE_ID_NAME}, ${FORMER_STORE_ID_NAME})`;
  const valueOf = (name: string): string | null => rows.find((row) => row.name === name)?.value ?? null;
  return { current: valueOf(STORE_ID_NAME), former: valueOf(FORMER_STORE_ID_NAME) };
}

/** Sets the store id of a new database to `unassigned`, so that the next start marks its store with a new id. */
export async function unassignNewStoreId(sql: Sql | Transaction): Promise<void> {
  await sql`
    insert into setting (name, value) values (${STORE_ID_NAME}, ${UNASSIGNED_STORE_ID}) on conflict (name) do nothing`;
}

/**
 * Sets the store id of a restored database to `unassigned`, so that the next start marks its store with a new id. A
 * restore makes a separate installation. The former store id is kept in another setting.
 */
export async function unassignRestoredStoreId(tx: Transaction): Promise<void> {
  await tx`
    insert into setting (name, value)
    select ${FORMER_STORE_ID_NAME}, value from setting
    where name = ${STORE_ID_NAME} and value <> ${UNASSIGNED_STORE_ID}
    on conflict (name) do update set value = excluded.value`;
  await tx`
    insert into setting (name, value) values (${STORE_ID_NAME}, ${UNASSIGNED_STORE_ID})
    on conflict (name) do update set value = excluded.value`;
}

/**
 * Returns the store id; creates one if it is unassigned. `writeToStore` is called with a new id before the id is stored
 * in the database, and while its row is locked. Of two nodes that start at once, one marks its store, and the other
 * finds the id.
 */
export async function ensureStoreId(pool: Pool, writeToStore: (id: string) => Promise<void>): Promise<string> {
  return pool.transaction(async (tx) => {
    const [row] = await tx<{ value: string }[]>`
      select value from setting where name = ${STORE_ID_NAME} for update`;
    if (row!.value !== UNASSIGNED_STORE_ID) return row!.value;
    // Each attempt uses a new id: a node that was killed at this point may have marked another store.
    const id = randomBytes(STORE_ID_BYTES).toString('hex');
    await writeToStore(id);
    await tx`update setting set value = ${id} where name = ${STORE_ID_NAME}`;
    return id;
  }, STORE_ID_ASSIGN_TIMEOUT_MS);
}
