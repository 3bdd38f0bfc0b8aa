import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../src/config/load.ts';
import { NotConfiguredError } from '../../src/config/problem.ts';
import { Folder, MINIMAL, SECRET } from './folder.ts';
import { failure, load } from './load.ts';

const HEAD = 'Klatch is not configured yet: run "klatch setup", or edit these keys:';

function missing(text: string): string[] {
  const [head, ...lines] = failure(NotConfiguredError, text).split('\n');
  expect(head).toBe(HEAD);
  return lines;
}

describe('a configuration is not complete', () => {
  test('without a secret and an address', () => {
    expect(missing('')).toEqual(['server.conf: secret: is not set', 'server.conf: http.base-uri: is not set']);
    expect(missing('secret = null')).toHaveLength(2);
  });

  test('with a required key whose name is misspelt, and says which one was probably meant', () => {
    expect(missing('secrett = "x"\nhttp.base-urii = "http://a.example"')).toEqual([
      'server.conf: secret: is not set',
      'server.conf: http.base-uri: is not set',
      'server.conf:1: secrett: unknown key, did you mean secret?',
      'server.conf:2: http.base-urii: unknown key, did you mean http.base-uri?',
    ]);
  });

  test('with placeholders, which are asked for before the type, at any depth and in keys that nobody knows', () => {
    const text = `secret = "<SERVER_SECRET>"
http { port = <PORT>, base-uri = "<BASE_URI>" }
public-endpoints = ["wss://a.example", "<ENDPOINT>"]
services.google.push.keys = [
  { project-id = 1, key = <GOOGLE_PUSH_KEY> }
]
modules.security.server-keys = <SERVER KEYS>
limits = <LIMITS>
services.pear.push = [{ key = """<APPLE-PUSH key_1>""" }]`;
    expect(missing(text)).toEqual([
      'server.conf:1: secret: still holds its placeholder',
      'server.conf:2: http.port: still holds its placeholder',
      'server.conf:2: http.base-uri: still holds its placeholder',
      'server.conf:3: public-endpoints[1]: still holds its placeholder',
      'server.conf:5: services.google.push.keys[0].key: still holds its placeholder',
      'server.conf:7: modules.security.server-keys: still holds its placeholder',
      'server.conf:8: limits: still holds its placeholder',
      'server.conf:9: services.pear.push[0].key: still holds its placeholder',
      'server.conf:9: services.pear: unknown key',
    ]);
  });

  test('and its mistakes are named in the same go', () => {
    expect(missing(`secret = "<SERVER_SECRET>"\nhttp.port = abc`)).toEqual([
      'server.conf:1: secret: still holds its placeholder',
      'server.conf: http.base-uri: is not set',
      'server.conf:2: http.port: expected a port number, got "abc"',
    ]);
  });

  test('with a placeholder in an included file, which is the one that is named', () => {
    using folder = new Folder();
    const included = folder.write('db.conf', '\nservices.postgresql.password = "<DB_PASSWORD>"');
    const file = folder.write('server.conf', `${MINIMAL}include "db.conf"`);
    expect(() => loadConfig(file, { env: {} })).toThrow(
      `${HEAD}\n${included}:2:32: services.postgresql.password: still holds its placeholder`,
    );
  });

  test('but a placeholder that is overridden does not count', () => {
    const text = `${MINIMAL}services.postgresql.password = "<DB_PASSWORD>"\nservices.postgresql.password = \${?PASSWORD}`;
    expect(load(text, { PASSWORD: 'p' }).config.postgresql.password).toBe('p');
    expect(missing(text)).toEqual(['server.conf:3: services.postgresql.password: still holds its placeholder']);
  });

  test.each(['<1A>', 'x<A>', '<A>x', '<A', '<>', '<A.B>', '<Ä>', '<A\\n>', ' <A>'])('%j is no placeholder', (value) => {
    expect(load(`${MINIMAL}services.postgresql.password = "${value}"`).config.secret).toBe(SECRET);
  });
});
