import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { Folder, MINIMAL, SECRET } from './folder.ts';
import { failure, load, refusal } from './load.ts';

const HTTP_ADDRESS = 'an absolute http:// or https:// address without query and fragment';

describe('a wrong value is named by file, line and key, with what was expected and what was found', () => {
  test.each([
    ['http.port = abc', 'http.port: expected a port number, got "abc"'],
    ['http.port = 65536', 'http.port: expected a port number from 0 to 65535, got 65536'],
    ['http.port = "-1"', 'http.port: expected a port number from 0 to 65535, got "-1"'],
    ['http.port = 80.5', 'http.port: expected a port number from 0 to 65535, got 80.5'],
    ['http.port = [9090]', 'http.port: expected a port number, got a list'],
    ['http.port = { a = 1 }', 'http.port: expected a port number, got an object'],
    ['http.port = null', 'http.port: expected a port number from 0 to 65535, got null'],
    ['http.port = ""', 'http.port: expected a port number, got ""'],
    ['services.postgresql.port = 0', 'services.postgresql.port: expected a port number from 1 to 65535, got 0'],
    ['services.postgresql.embedded = maybe', 'services.postgresql.embedded: expected true or false, got "maybe"'],
    ['services.postgresql.embedded = 1', 'services.postgresql.embedded: expected true or false, got 1'],
    [
      'services.postgresql.pool-size = 0',
      'services.postgresql.pool-size: expected a whole number from 1 to 500, got 0',
    ],
    ['limits.hops = 2.5', 'limits.hops: expected a whole number from 1 to 100, got 2.5'],
    ['limits.hops = many', 'limits.hops: expected a whole number from 1 to 100, got "many"'],
    ['limits.hops = true', 'limits.hops: expected a whole number from 1 to 100, got true'],
    [
      'http.request-timeout = 10',
      'http.request-timeout: expected a duration from 1s to 10m, got 10: it needs a unit, as in 10s',
    ],
    [
      'http.request-timeout = "10"',
      'http.request-timeout: expected a duration from 1s to 10m, got "10": it needs a unit, as in 10s',
    ],
    ['http.request-timeout = 1h', 'http.request-timeout: expected a duration from 1s to 10m, got "1h"'],
    ['http.request-timeout = 10 parsecs', 'http.request-timeout: expected a duration from 1s to 10m, got "10 parsecs"'],
    ['http.stop-timeout = -1s', 'http.stop-timeout: expected a duration from 0s to 10m, got "-1s"'],
    ['http.max-body = 1 TiB', 'http.max-body: expected a size from 1 KiB to 64 MiB, got "1 TiB"'],
    ['http.max-body = huge', 'http.max-body: expected a size from 1 KiB to 64 MiB, got "huge"'],
    ['delivery.answer-size = -1', 'delivery.answer-size: expected a size from 0 bytes to 16 MiB, got -1'],
    ['delivery.lookups = 9', 'delivery.lookups: expected a whole number from 1 to 8, got 9'],
    ['delivery.retry = []', 'delivery.retry: expected a list of 1 to 32 items, got 0'],
    ['delivery.retry = 5s', 'delivery.retry: expected a list of durations, got "5s"'],
    [
      'delivery.retry = [5s, 6]',
      'delivery.retry[1]: expected a duration from 10ms to 7d, got 6: it needs a unit, as in 10s',
    ],
    ['log.level = loud', 'log.level: expected "debug", "info", "warn" or "error", got "loud"'],
    ['project-name = ""', 'project-name: expected a name of 1 to 80 characters, got "": it is empty'],
    [
      'project-name = "a\\nb"',
      'project-name: expected a name of 1 to 80 characters, got "a\\nb": it holds a control character',
    ],
    ['data-dir = ""', 'data-dir: expected the path of a folder, got "": it is empty'],
    ['data-dir = 5', 'data-dir: expected the path of a folder, got 5'],
    ['http = 5', 'http: expected a section { … } of keys, got a value that is not shown'],
    ['services.postgresql = []', 'services.postgresql: expected a section { … } of keys, got a list'],
    ['limits = null', 'limits: expected a section { … } of keys, got null'],
    ['http.cors = ["*", "https://a.example"]', 'http.cors: "*" is any origin already: list it alone, or not at all'],
    ['services.google.push.keys = { a = 1 }', 'services.google.push.keys: expected a list of objects, got an object'],
    [
      'services.google.push.keys = [5]',
      'services.google.push.keys[0]: expected an object with project-id and key, got a value that is not shown',
    ],
    [
      'services.google.push.keys = [{ key = k }]',
      'services.google.push.keys[0].project-id: is missing: expected a project id (1 to 100 letters, digits, "-" and ".")',
    ],
    [
      'services.google.push.keys = [{ project-id = 1 }]',
      'services.google.push.keys[0].key: is missing: expected the path of a service account file, or its JSON',
    ],
  ])('%s', (line, sentence) => {
    expect(refusal(line)).toBe(`server.conf:3: ${sentence}`);
  });

  test('a long value is cut', () => {
    expect(refusal(`log.level = "${'x'.repeat(500)}"`)).toBe(
      `server.conf:3: log.level: expected "debug", "info", "warn" or "error", got "${'x'.repeat(60)}…"`,
    );
  });

  test('all at once, from top to bottom', () => {
    const text = `secret = short\nhttp {\n  port = abc\n  base-uri = "ftp://x"\n}\nlimits.hops = 0\ndelivery.retry = [1s, x, 0s]\n`;
    expect(failure(ConfigError, text).split('\n')).toEqual([
      'server.conf:1: secret: expected at least 32 characters that nobody can guess, got a value that is not shown: it has 5',
      'server.conf:3: http.port: expected a port number, got "abc"',
      `server.conf:4: http.base-uri: expected ${HTTP_ADDRESS}, got "ftp://x"`,
      'server.conf:6: limits.hops: expected a whole number from 1 to 100, got 0',
      'server.conf:7: delivery.retry[1]: expected a duration from 10ms to 7d, got "x"',
      'server.conf:7: delivery.retry[2]: expected a duration from 10ms to 7d, got "0s"',
    ]);
  });

  test('the problems are there as data', () => {
    using folder = new Folder();
    const file = folder.write('server.conf', `${MINIMAL}http.port = abc`);
    let problems: unknown;
    try {
      loadConfig(file, { env: {} });
    } catch (error) {
      problems = (error as ConfigError).problems;
    }
    expect(problems).toEqual([{ file, line: 3, key: 'http.port', sentence: 'expected a port number, got "abc"' }]);
  });

  test('in the file that includes brought in', () => {
    using folder = new Folder();
    const included = folder.write('more.conf', '\n\nhttp.port = abc\nhttp.prot = 1\n');
    const file = folder.write('server.conf', `${MINIMAL}include "more.conf"\nlimits.hops = 0`);
    expect(() => loadConfig(file, { env: {} })).toThrow(
      `${file}:4: limits.hops: expected a whole number from 1 to 100, got 0\n${included}:3: http.port: expected a port number, got "abc"`,
    );
  });

  test('from a variable of the environment, at the line that takes it', () => {
    expect(refusal('http.port = ${PORT}', { PORT: 'eighty' })).toBe(
      'server.conf:3: http.port: expected a port number, got "eighty"',
    );
  });
});

describe('a file that cannot be read', () => {
  test.each([
    ['http {', 'server.conf:3: This { is never closed: the file ends before its }.'],
    ['http.port', "server.conf:4: Found the end of the file after the key 'http.port'; expected =, :, += or {."],
    [
      'a = ${NOWHERE}',
      'server.conf:3: ${NOWHERE} is not defined, neither as a key nor as an environment variable; define it, or write ${?NOWHERE} where it may be missing.',
    ],
  ])('%s', (line, sentence) => {
    expect(refusal(line)).toBe(sentence);
  });

  test('because it is a folder', () => {
    using folder = new Folder();
    expect(() => loadConfig(folder.path, { env: {} })).toThrow(
      `${folder.path}:1: Cannot read ${folder.path}: it is a folder.`,
    );
  });
});

describe('no message holds a secret', () => {
  const hidden = 'hunter2-Tr0ub4dor';

  test.each([
    `secret = ${hidden}`,
    `secret = [${hidden}]`,
    `secret { a = ${hidden} }`,
    `services.postgresql.password = [${hidden}]`,
    `services.postgresql.password = "${hidden}\\u0000"`,
    `services.postgresql.password { a = ${hidden} }`,
    `services.postgresql = ${hidden}`,
    `services.klatch-activation = ${hidden}`,
    `services.klatch-activation.auth-token = [${hidden}]`,
    `services.klatch-activation.auth-token = "${hidden}\\n"`,
    `services.klatch-activation.uri = "https://user:${hidden}@gate.example.org"`,
    `services.klatch-activation.uri = "https://gate.example.org/?token=${hidden}"`,
    `http.base-uri = "https://${hidden}@gate.example.org"`,
    `http.base-uri = "https://x:${hidden}@gate.example.org/?a"`,
    `services.google.push.keys = [${hidden}]`,
    `services.google.push.keys = ${hidden}`,
    `services.google.push.keys = [{ project-id = 1, key = [${hidden}] }]`,
    `services.google.push.keys = [{ project-id = 1, key = "${hidden}\\n" }]`,
    `services.postgresql.password ${hidden}`,
    `services.postgresql.password = a\n  ${hidden} b`,
    `services.postgresql.password = ${hidden}"`,
    `services.postgresql.password = "${hidden}`,
    `services.postgresql.password = ${hidden}\\d`,
    `services.postgresql.password = a\n${hidden}..x = 1`,
    `services.postgresql.password = a\ninclude ${hidden}`,
    `include "http://${hidden}/"`,
  ])('%s', (line) => {
    const message = refusal(line);
    expect(message).toMatch(/^server\.conf:[345]: /);
    expect(message).not.toContain('hunter2');
    expect(message).not.toContain('Tr0ub4dor');
  });

  test('nor does a warning', () => {
    const { warnings } = load(`${MINIMAL}services.postgresql.pasword = ${hidden}\nsecrets = ${hidden}`);
    expect(warnings).toHaveLength(2);
    expect(warnings.join()).not.toContain('hunter2');
  });
});

describe('the secret', () => {
  const because = (secret: string): string =>
    failure(ConfigError, `secret = "${secret}"\nhttp.base-uri = "http://a.example"`);

  test.each([
    ['x'.repeat(64), 'it repeats a few characters'],
    ['correct-horse'.repeat(4), 'it repeats itself'],
    ['abcdefghijklmnopqrstuvwxyz0123456789', 'it counts up or down'],
    ['zyxwvutsrqponmlkjihgfedcba9876543210', 'it counts up or down'],
    ['change-me-secret-password-klatch-server', 'it is made of common words'],
    [SECRET.slice(0, 31), 'it has 31'],
  ])('%s is refused', (secret, reason) => {
    const message = because(secret);
    expect(message).toContain(`got a value that is not shown: ${reason}`);
    expect(message).not.toContain(secret);
  });

  test('of 32 random hexadecimal digits is accepted', () => {
    expect(() => load('secret = 9f86d081884c7d659a2feaa0c55ad015\nhttp.base-uri = "http://a.example"')).not.toThrow();
  });
});
