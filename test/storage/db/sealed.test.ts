import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createOrCheckCanary, Sealer, WrongSecretError } from '../../../src/storage/db/sealed.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const sealer = new Sealer('the secret of this installation');

describe('Sealer', () => {
  test.each(['', 'whsec_abc', 'Привет 👋', '\u0000', 'x'.repeat(100_000)])('opens what it sealed (%#)', (plain) => {
    const sealed = sealer.seal('token', plain);
    expect(sealed).toMatch(/^1\.[\w-]+$/);
    expect(sealer.open('token', sealed)).toBe(plain);
    expect(new Sealer('the secret of this installation').open('token', sealed)).toBe(plain);
  });

  test('never seals to the same text twice', () => {
    expect(new Set(Array.from({ length: 100 }, () => sealer.seal('token', 'same'))).size).toBe(100);
  });

  test('does not open with another secret or for another purpose', () => {
    const sealed = sealer.seal('integration-token', 'plain');
    expect(() => new Sealer('another secret').open('integration-token', sealed)).toThrow(WrongSecretError);
    expect(() => sealer.open('hook-secret', sealed)).toThrow(WrongSecretError);
  });

  test('does not open with any byte changed, cut off or added', () => {
    const bytes = Buffer.from(sealer.seal('token', 'plain').slice(2), 'base64url');
    const opens =
      (changed: Buffer): (() => string) =>
      () =>
        sealer.open('token', `1.${changed.toString('base64url')}`);
    for (let i = 0; i < bytes.length; i += 1) {
      const flipped = Buffer.from(bytes);
      flipped[i]! ^= 1;
      expect(opens(flipped)).toThrow(WrongSecretError);
      expect(opens(bytes.subarray(0, i))).toThrow(WrongSecretError);
    }
    expect(opens(Buffer.concat([bytes, Buffer.of(0)]))).toThrow(WrongSecretError);
  });

  test.each(['', '1.', 'plain text', '2.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'])(
    'refuses %j, which it never made',
    (value) => {
      expect(() => sealer.open('token', value)).toThrow(WrongSecretError);
    },
  );
});

describe('checkCanary()', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  test('takes the first secret and refuses any other from then on, in a sentence with the key', async () => {
    const check = (secret: Sealer): Promise<void> => database.query((sql) => createOrCheckCanary(sql, secret));
    await Promise.all([check(sealer), check(sealer), check(sealer)]);
    const other = check(new Sealer('another'));
    await expect(other).rejects.toThrow(WrongSecretError);
    await expect(other).rejects.toThrow(
      /secret differs from the one this database was made with.*`secret`.*server\.conf/,
    );
    await check(sealer);
    const rows = await database.query((sql) => sql`select name, value from setting`);
    expect(rows).toHaveLength(1);
    expect(rows[0]!['value']).not.toContain('klatch');
  });

  test('refuses a canary that was tampered with', async () => {
    await database.query((sql) => sql`update setting set value = '1.' || repeat('A', 60)`);
    await expect(database.query((sql) => createOrCheckCanary(sql, sealer))).rejects.toThrow(WrongSecretError);
  });
});
