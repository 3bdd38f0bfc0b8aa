import { expect, test } from '@jest/globals';
import { isFileKey } from '../../src/files/store.ts';
import { newFileId } from '../../src/files/uploads.ts';

test('the name of a file is never taken for an option of a command', () => {
  // If ids were only random, one in 64 would begin with a dash.
  const ids = Array.from({ length: 5_000 }, newFileId);
  expect(ids.filter((id) => id.startsWith('-'))).toEqual([]);
  expect(ids.every(isFileKey)).toBe(true);
  expect(new Set(ids).size).toBe(ids.length);
});
