import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { heartbeatAndListLiveNodes, deleteNode } from '../../../src/storage/hooks/nodes.ts';
import type { Pool } from '../../../src/storage/db/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const LEASE_MS = 10_000;

let database: TestDatabase;
let pool: Pool;

beforeEach(async () => {
  database = await createTestDatabase();
  pool = database.open().general;
});
afterEach(() => database.drop());

const join = (id: string): Promise<string[]> => pool.run((sql) => heartbeatAndListLiveNodes(sql, id, LEASE_MS));
/** Moves the end of a node's row to this interval before or after now. */
const endIn = (id: string, interval: string): Promise<unknown> =>
  database.query((sql) => sql`update node set expires_at = clock_timestamp() + ${interval}::interval where id = ${id}`);
const rows = async (): Promise<string[]> => {
  const found = await database.query((sql) => sql<{ id: string }[]>`select id from node order by id`);
  return found.map(({ id }) => id);
};

describe('nodes', () => {
  test('know of each other, in one order, from the moment they join until they leave', async () => {
    expect(await join('b')).toEqual(['b']);
    expect(await join('a')).toEqual(['a', 'b']);
    expect(await join('b')).toEqual(['a', 'b']);
    await pool.run((sql) => deleteNode(sql, 'a'));
    expect(await join('b')).toEqual(['b']);
  });

  test('that said nothing for as long as a lease lasts do not count, nor those of a clock that was set back', async () => {
    for (const id of ['a', 'b', 'c']) await join(id);
    await endIn('a', '-1 ms');
    await endIn('b', '1 hour');
    expect(await join('c')).toEqual(['c']);
    expect(await join('b')).toEqual(['b', 'c']);
  });

  test('that ended without a word are forgotten after a day, and come back after any time', async () => {
    for (const id of ['a', 'b', 'c']) await join(id);
    await endIn('a', '-25 hours');
    await endIn('b', '-23 hours');
    await endIn('c', '-30 days');
    expect(await join('c')).toEqual(['c']);
    expect(await rows()).toEqual(['b', 'c']);
  });

  test('can all join at the same moment', async () => {
    const ids = Array.from({ length: 8 }, (_, n) => `node ${n}`);
    await Promise.all(ids.map(join));
    expect(await join('node 0')).toEqual(ids);
  });
});
