import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { errorKinds, type ErrorCode } from '../../src/errors.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/uploads.md'), 'utf8');

test('the page about files over HTTP names errors that there are, with their status', () => {
  const rows = [...page.matchAll(/^\| `(\w+)` +\| (\d{3}) +\|/gm)];
  expect(rows.length).toBeGreaterThan(8);
  for (const [, code, status] of rows)
    expect([code, Number(status)]).toEqual([code, errorKinds[code as ErrorCode].status]);
  for (const [, status, code] of page.matchAll(/\| (\d{3}) `(\w+)`/g)) {
    expect([code, errorKinds[code as ErrorCode].status]).toEqual([code, Number(status)]);
  }
});
