import { describe, expect, test } from '@jest/globals';
import { MINIMAL } from './folder.ts';
import { load, withoutPositions } from './load.ts';
import { createServiceAccount } from '../push/keys.ts';

const withoutFile = (warning: string): string => withoutPositions(warning.replace(/^\S*\//, ''), '');

describe('a key that nobody knows is a warning', () => {
  test.each([
    ['http.prot = 1', 'http.prot: unknown key, did you mean http.port?'],
    ['http.Port = 1', 'http.Port: unknown key, did you mean http.port?'],
    ['http.base-url = "x"', 'http.base-url: unknown key, did you mean http.base-uri?'],
    ['services.postgres.host = x', 'services.postgres: unknown key, did you mean services.postgresql?'],
    ['service { postgresql { host = x } }', 'service: unknown key, did you mean services?'],
    [
      'services.postgresql.pasword = x',
      'services.postgresql.pasword: unknown key, did you mean services.postgresql.password?',
    ],
    ['base-uri = x', 'base-uri: unknown key, did you mean http.base-uri?'],
    ['port = 80', 'port: unknown key'],
    ['server-keys = []', 'server-keys: unknown key, did you mean modules.security.server-keys?'],
    [
      'modules { security { modules.security.server-keys = [] } }',
      'modules.security.modules.security.server-keys: unknown key, did you mean modules.security.server-keys?',
    ],
    ['metrics { http { port = 80 } }', 'metrics.http.port: unknown key, did you mean http.port?'],
    ['services.pear.push.keys = []', 'services.pear: unknown key'],
    ['files.storage.location = x', 'files: unknown key'],
    ['"http.port" = 1', '"http.port": unknown key, did you mean http.port?'],
    ['__proto__ { x = 1 }', '__proto__: unknown key'],
  ])('%s', (line, expected) => {
    const { warnings } = load(`${MINIMAL}${line}`);
    expect(warnings.map(withoutFile)).toEqual([`server.conf:3: ${expected}`]);
  });

  test('beside a key that nobody may see', () => {
    const key = JSON.stringify(createServiceAccount().json);
    const { warnings } = load(`${MINIMAL}services.google.push.keys = [{ project-id = 1, key = ${key}, kee = 2 }]`);
    const expected = 'server.conf:3: services.google.push.keys[0].(hidden): unknown key, did you mean key?';
    expect(warnings.map(withoutFile)).toEqual([expected]);
  });

  test('and all of them are named, in the order of the file', () => {
    const { warnings } = load(`zzz = 1\n${MINIMAL}http.aaa = 1\nhttp.bbb = 2`);
    expect(warnings.map((warning) => withoutFile(warning).replace('server.conf:', ''))).toEqual([
      '1: zzz: unknown key',
      '4: http.aaa: unknown key',
      '5: http.bbb: unknown key',
    ]);
  });
});
