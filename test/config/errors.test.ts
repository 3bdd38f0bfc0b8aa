import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError, NotConfiguredError } from '../../src/config/problem.ts';
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
    ['http.max-body-size = 1 TiB', 'http.max-body-size: expected a size from 1 KiB to 64 MiB, got "1 TiB"'],
    ['http.max-body-size = huge', 'http.max-body-size: expected a size from 1 KiB to 64 MiB, got "huge"'],
    ['delivery.response-size = -1', 'delivery.response-size: expected a size from 0 bytes to 16 MiB, got -1'],
    ['delivery.dns-concurrency = 9', 'delivery.dns-concurrency: expected a whole number from 1 to 8, got 9'],
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
    expect(problems).toEqual([
      {
        file,
        line: 3,
        column: 13,
        key: 'http.port',
        sentence: 'expected a port number, got "abc"',
        excerpt: ['    http.port = abc', '                ^'],
      },
    ]);
  });

  test('in the file that includes brought in', () => {
    using folder = new Folder();
    const included = folder.write('more.conf', '\n\nhttp.port = abc\nhttp.prot = 1\n');
    const file = folder.write('server.conf', `${MINIMAL}include "more.conf"\nlimits.hops = 0`);
    expect(() => loadConfig(file, { env: {} })).toThrow(
      `${file}:4:15: limits.hops: expected a whole number from 1 to 100, got 0\n    limits.hops = 0\n                  ^\n` +
        `${included}:3:13: http.port: expected a port number, got "abc"\n    http.port = abc\n                ^\n`,
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
    ['http.port', "server.conf:3: Found the end of the line after the key 'http.port'; expected =, :, += or {."],
    [
      'a = ${NOWHERE}',
      'server.conf:3: ${…} is not defined, neither as a key nor as an environment variable; define it, or write ${?…} where it may be missing.',
    ],
  ])('%s', (line, sentence) => {
    expect(refusal(line)).toBe(sentence);
  });

  test('because it is a folder', () => {
    using folder = new Folder();
    expect(() => loadConfig(folder.path, { env: {} })).toThrow(
      `${folder.path}:1:1: Cannot read ${folder.path}: it is a folder.`,
    );
  });
});

/** The complete error message for a text on the third line of the file. */
function failureMessage(line: string): string {
  using folder = new Folder();
  const file = folder.write('server.conf', `${MINIMAL}${line}\n`);
  try {
    loadConfig(file, { env: {} });
  } catch (error) {
    if (error instanceof ConfigError || error instanceof NotConfiguredError) {
      return error.message.replaceAll(`${folder.path}/`, '').replace(/^Klatch is not configured.*\n/, '');
    }
    throw error;
  }
  throw new Error('It loaded.');
}

/** Whether the setting expects the name of a file with a key. There the content of a key must not pass as a name. */
function isOfKey(line: string): boolean {
  return /private = KEY|key = KEY|path = KEY|authority = KEY|certificate = KEY/.test(line);
}

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
    'services.postgresql.password = ${hunter2}',
    'services.postgresql.password = abc${Tr0ub4dor}',
    'services { postgresql { user = x, password = ${hunter2} } }',
    'services.postgresql.password =\n  ${hunter2}',
    'services.postgresql.pasword = ${hunter2}',
    'services.postgresql.password = "\\h unter2"\nhttp.port = hunter2@x',
    `services.postgresql.host = "postgres://klatch:${hidden}/x@db/klatch"`,
    `services.postgresql.host = "postgres://klatch:${hidden}"`,
    `services.smtp.host = "smtp://klatch:${hidden}@mail"`,
    `services.postgresql.db = "${hidden}${'x'.repeat(63)}"`,
    `services.postgresql.user = "${hidden}\\n"`,
    `services.klatch-activation.uri = "https://gate.example.org/#${hidden}"`,
    `services.klatch-activation.uri = "https://gate.example.org:99999/${hidden}"`,
    `services.aws.s3.endpoint = "${hidden}"`,
    `services.aws.s3.access-key = "${hidden}\\n"`,
    `services.apple.push.keys = [{ key-id = "${hidden}", team-id = x, bundle-id = y, path = z }]`,
    `http.base-uri = "https://chat.example.org/?${hidden}"`,
    `http.cors = ["https://x:${hidden}@a.example"]`,
    `services.postgresql.password = abc,hunter2=9\nhttp.port = x`,
    `services.postgresql.pasword = abc,hunter2=9\nhttp.port = x`,
    `services { postgresql { password = abc,hunter2=9, port = x } }`,
    `services.postgresql.password = a, hunter2 { x = "<Y>" }\nhttp.port = x`,
    `services.postgresql.password : abc "\nhunter2`,
    `services.postgresql.password = """\nhttp.port = ${hidden} """ x = 1`,
    `http.port = x # password ${hidden}`,
    `delivery.allow = ["https://hooks.example/services/${hidden}"]`,
    `public-endpoints = ["wss://a.example:99999/${hidden}"]`,
    `services.postgresql { password = ${hidden}, port = x }`,
  ])('%s', (line) => {
    const message = failureMessage(line);
    expect(message).toMatch(/^server\.conf:[345]:\d+: /);
    expect(message).not.toContain('hunter2');
    expect(message).not.toContain('Tr0ub4dor');
  });

  const pem =
    '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIHunter2Hunter2Hunter2Hunter2Hunter2Hunter\n-----END PRIVATE KEY-----';
  const body = 'MC4CAQAwBQYDK2VwBCIEIHunter2Hunter2Hunter2Hunter2Hunter2Hunter2';

  test.each([
    ['modules.security.server-keys = [{ public = server.pem, private = KEY }]'],
    ['endpoints = [{ type = tcp, port = 1, certificate = server.pem, key = KEY }]'],
    ['endpoints = [{ type = tcp, port = 1, certificate = KEY, key = server.pem }]'],
    ['services.apple.push.keys = [{ key-id = ABCDE12345, team-id = ABCDE12345, bundle-id = a.b, path = KEY }]'],
    ['services.apple.push.ca-file = KEY'],
    ['services.google.push.keys = [{ project-id = p, key = KEY }]'],
    ['services.smtp.template = KEY\nhttp.port = x'],
    ['data-dir = KEY\nhttp.port = x'],
    ['services.file-storage.location = KEY\nhttp.port = x'],
    ['project-name = KEY\nhttp.port = x'],
    ['http.base-uri = KEY'],
    ['http.port = KEY'],
    ['delivery.allow = [KEY]'],
    ['services.postgresql.host = KEY'],
  ])('a key that is pasted where something else belongs is not repeated: %s', (line) => {
    for (const key of [`"${pem.replaceAll('\n', '\\n')}"`, `"""${pem}"""`, ...(isOfKey(line) ? [`"${body}"`] : [])]) {
      const message = failureMessage(line.replace('KEY', () => key));
      expect(message).not.toMatch(/hunter/i);
    }
  });

  test('what is a key is called one', () => {
    expect(refusal(`modules.security.server-keys = [{ public = a.pem, private = """${pem}""" }]`)).toBe(
      'server.conf:3: modules.security.server-keys[0].private: expected the path of a PEM file, got a key, which is not shown: write the key into a file, and the path of that file here',
    );
    expect(refusal(`http.interface = """${pem}"""`)).toContain('got a key, which is not shown');
  });

  test('nor does the name of a file that may be the key itself, while other names are told', () => {
    const text = (path: string): string => `services.apple.push.ca-file = "${path}"`;
    expect(refusal(text(body))).toContain('the file that it names does not exist');
    expect(refusal(text('keys/apple.pem'))).toContain('keys/apple.pem does not exist');
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
