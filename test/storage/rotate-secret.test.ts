import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { DatabaseInUseError, rotateSealedCountingByPurpose, SEALED_COLUMNS } from '../../src/storage/rotate-secret.ts';
import { createOrCheckCanary, Sealer, WrongSecretError } from '../../src/storage/db/sealed.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { makeGroups } from './fixture.ts';

const [old, next, other] = ['old secret', 'new secret', 'another secret'].map((text) => new Sealer(text)) as [
  Sealer,
  Sealer,
  Sealer,
];
let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

const pool = () => database.open().general;

/** All sealed (encrypted) values, opened with the secret of this sealer; null if it does not open them. */
async function opened(sealer: Sealer): Promise<Record<string, (string | null)[]>> {
  const open = (purpose: string, sealed: string): string | null => {
    try {
      return sealer.open(purpose, sealed);
    } catch {
      return null;
    }
  };
  return database.query(async (sql) => {
    const values = async (rows: Promise<{ sealed: string }[]>, purpose: string) =>
      (await rows).map(({ sealed }) => open(purpose, sealed));
    return {
      canary: await values(sql`select value as sealed from setting where name = 'secret-canary'`, 'secret-canary'),
      tokens: await values(
        sql`select token_sealed as sealed from integration order by conversation_id`,
        'integration-token',
      ),
      secrets: await values(sql`select secret_sealed as sealed from reverse_hook order by id`, 'hook-secret'),
      oldSecrets: await values(
        sql`select old_secret_sealed as sealed from reverse_hook where old_secret_sealed is not null order by id`,
        'hook-secret',
      ),
    };
  });
}

/** Inserts groups with a token each, and hooks of the first one, every third of which has an old secret. */
async function fill(groups: number, hooks: number): Promise<void> {
  const [first] = await makeGroups(database, groups);
  await database.query(async (sql) => {
    await createOrCheckCanary(sql, old);
    const ids = await sql<{ id: number }[]>`select conversation_id as id from integration order by 1`;
    const tokens = ids.map((_, n) => old.seal('integration-token', `token ${n}`));
    await sql`
      update integration i set token_sealed = v.sealed
      from unnest(${ids.map(({ id }) => id)}::bigint[], ${tokens}::text[]) as v (id, sealed)
      where i.conversation_id = v.id`;
    const numbers = Array.from({ length: hooks }, (_, n) => n);
    const secrets = numbers.map((n) => old.seal('hook-secret', `secret ${n}`));
    const olds = numbers.map((n) => (n % 3 === 0 ? old.seal('hook-secret', `old ${n}`) : null));
    await sql`
      insert into reverse_hook (conversation_id, url, secret_sealed, old_secret_sealed, start_seq, cursor, removed_at, removed_by)
      select ${first!.id}, 'https://example.com/' || v.n, v.secret, v.old, 0, 0,
        case when v.n % 5 = 0 then now() end, case when v.n % 5 = 0 then 'client' end
      from unnest(${numbers}::int[], ${secrets}::text[], ${olds}::text[]) as v (n, secret, old) order by v.n`;
  });
}

describe('reseal()', () => {
  test('moves everything, over many batches, hooks that were removed too, and does nothing when it is called again', async () => {
    await fill(3, 1_203);
    const before = await opened(old);
    expect(before['secrets']).toHaveLength(1_203);
    expect(before['oldSecrets']).toHaveLength(401);
    expect(Object.values(before).flat()).not.toContain(null);
    expect(await rotateSealedCountingByPurpose(pool(), { oldSealer: old, newSealer: next })).toEqual(
      new Map([
        ['integration-token', 3],
        ['incoming-secret', 0],
        ['group-invite', 0],
        ['device-token', 0],
        ['hook-secret', 1_604],
      ]),
    );
    expect(await opened(next)).toEqual(before);
    expect(new Set(Object.values(await opened(old)).flat())).toEqual(new Set([null]));
    const again = await rotateSealedCountingByPurpose(pool(), { oldSealer: old, newSealer: next });
    expect([...again.values()]).toEqual([0, 0, 0, 0, 0]);
    // All values are already sealed with the new secret, so the old secret is not needed and may be wrong.
    expect([...(await rotateSealedCountingByPurpose(pool(), { oldSealer: other, newSealer: next })).values()]).toEqual([
      0, 0, 0, 0, 0,
    ]);
    await database.query((sql) => createOrCheckCanary(sql, next));
  });

  test('knows every sealed column of the schema', async () => {
    const rows = await database.query(
      (sql) => sql<{ table: string; column: string }[]>`
        select table_name as table, column_name as column from information_schema.columns
        where table_schema = 'public' and column_name like '%sealed%' order by 1, 2`,
    );
    const known = SEALED_COLUMNS.map(({ table, column }) => ({ table, column }));
    expect(known.map((each) => JSON.stringify(each)).sort()).toEqual(
      rows.map((each) => JSON.stringify({ ...each })).sort(),
    );
  });

  test('with a wrong old secret changes nothing', async () => {
    await fill(2, 5);
    const before = await opened(old);
    const wrong = rotateSealedCountingByPurpose(pool(), { oldSealer: other, newSealer: next });
    await expect(wrong).rejects.toThrow(WrongSecretError);
    await expect(wrong).rejects.toThrow(
      /^neither the old secret .* nor the one in server\.conf .*nothing was changed$/,
    );
    expect(await opened(old)).toEqual(before);
  });

  test('names the row that neither secret opens, and changes nothing', async () => {
    await fill(2, 600);
    const id = await database.query(async (sql) => {
      const sealed = other.seal('hook-secret', 'x');
      const [row] = await sql<{ id: number }[]>`
        update reverse_hook set secret_sealed = ${sealed} where url like '%/599' returning id`;
      return row!.id;
    });
    const before = await opened(old);
    await expect(rotateSealedCountingByPurpose(pool(), { oldSealer: old, newSealer: next })).rejects.toThrow(
      `secret_sealed of reverse_hook with id ${id} opens neither with the old secret nor with the new one; nothing was changed`,
    );
    expect(await opened(old)).toEqual(before);
  });

  test('takes what is sealed with the new secret already as it is', async () => {
    await fill(2, 3);
    const before = await opened(old);
    await database.query(async (sql) => {
      await sql`update reverse_hook set secret_sealed = ${next.seal('hook-secret', 'secret 0')} where url like '%/0'`;
    });
    expect((await rotateSealedCountingByPurpose(pool(), { oldSealer: old, newSealer: next })).get('hook-secret')).toBe(
      3,
    );
    expect(await opened(next)).toEqual(before);
  });

  test('is refused while a server has the database, whatever its data directory', async () => {
    await fill(1, 1);
    const before = await opened(old);
    const server = database.open();
    await server.lease.run((sql) => sql`select 1`);
    await expect(rotateSealedCountingByPurpose(pool(), { oldSealer: old, newSealer: next })).rejects.toThrow(
      DatabaseInUseError,
    );
    expect(await opened(old)).toEqual(before);
    await server.stop();
    const moved = await eventually(
      () => rotateSealedCountingByPurpose(pool(), { oldSealer: old, newSealer: next }).catch((error: Error) => error),
      (result) => result instanceof Map,
    );
    expect(moved).toBeInstanceOf(Map);
  });

  test('has nothing to do in a database that no server has used', async () => {
    expect([...(await rotateSealedCountingByPurpose(pool(), { oldSealer: old, newSealer: next })).values()]).toEqual([
      0, 0, 0, 0, 0,
    ]);
    await database.query((sql) => createOrCheckCanary(sql, other));
  });
});
