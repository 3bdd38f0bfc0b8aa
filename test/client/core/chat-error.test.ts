import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { isTransient, ServerError } from '../../../client/core/chat-error.ts';
import { errorKinds, type ErrorCode } from '../../../src/errors.ts';
import { client, sourceFiles } from '../../architecture/source-graph.ts';

describe('a refusal of the server', () => {
  test.each(Object.entries(errorKinds))('%s is repeated when the server says that this can help', (code, kind) => {
    const error = new ServerError(code, 'no');
    expect(error.assumedRetrySIfTransient).toBe(kind.retryAfterS ?? null);
    expect(isTransient(error)).toBe(kind.retryAfterS !== undefined);
  });

  test.each(['toString', 'newer_than_this_client', undefined])('%s is final', (code) => {
    expect(isTransient(new ServerError(code, 'no'))).toBe(false);
  });
});

test('the client compares codes that the server has', () => {
  const compared = sourceFiles(client).flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/\.code [!=]== '([a-z_]+)'/g)].map(([, code]) => code as ErrorCode),
  );
  expect(compared.length).toBeGreaterThan(5);
  expect(compared.filter((code) => errorKinds[code] === undefined)).toEqual([]);
});
