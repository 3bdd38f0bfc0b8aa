import { expect, test } from '@jest/globals';
import { readServerKeys } from '../../../src/config/keys/server-key-files.ts';
import { AboutSigner } from '../../../src/operations/server/signed-about.ts';
import { testConfig } from '../../support/config.ts';
import { testServer } from '../../support/database.ts';
import { TestKeys } from '../../support/server-keys.ts';

const NOON_MS = Date.parse('2026-11-21T12:00:00Z');
const later = (ms: number): Date => new Date(NOON_MS + ms);

test('a statement is given out for a minute and signed anew after it, or when the clock was put back', () => {
  using keys = new TestKeys(1);
  const statement = new AboutSigner({
    config: testConfig(testServer('none'), '/nowhere'),
    serverKeys: readServerKeys(keys.pairs),
    certificateFingerprints: [],
    listeners: [],
  });
  const dateAt = (ms: number): string => {
    const { statement: text, signatures } = statement.current(later(ms));
    expect(signatures).toHaveLength(1);
    expect(keys.verifies(0, text, signatures[0]!.signature)).toBe(true);
    return (JSON.parse(text) as { date: string }).date;
  };
  expect(dateAt(0)).toBe(later(0).toISOString());
  expect(dateAt(59_999)).toBe(later(0).toISOString());
  expect(dateAt(60_000)).toBe(later(60_000).toISOString());
  expect(dateAt(-1)).toBe(later(-1).toISOString());
});
