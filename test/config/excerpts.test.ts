import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { Folder, MINIMAL } from './folder.ts';

/** The error message for a text after the two lines that every configuration needs. */
function message(text: string): string {
  using folder = new Folder();
  const file = folder.write('server.conf', `${MINIMAL}${text}\n`);
  try {
    loadConfig(file, { env: {} });
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replaceAll(`${folder.path}/`, '');
    throw error;
  }
  throw new Error('It loaded.');
}

describe('a mistake is shown with its line and a caret beneath it', () => {
  test.each([
    [
      'http.port = abc',
      'server.conf:3:13: http.port: expected a port number, got "abc"\n    http.port = abc\n                ^',
    ],
    [
      'http {\n  port 8080\n}',
      "server.conf:4:8: Found '8080' after the key 'port'; expected =, :, += or {.\n    port 8080\n         ^",
    ],
    [
      'metrics {\n\tport =\n\tinterface = "::1"\n}',
      "server.conf:4:8: Found the end of the line after the key 'port'; expected a value on this line.\n    port =\n          ^",
    ],
    [
      'http.port = ${HTTP_PORT}',
      'server.conf:3:13: ${HTTP_PORT} is not defined, neither as a key nor as an environment variable; define it, or write ${?HTTP_PORT} where it may be missing.\n    http.port = ${HTTP_PORT}\n                ^',
    ],
    [
      'log { level = debug, format = loud }',
      'server.conf:3:31: log.format: expected "auto", "json" or "text", got "loud"\n    log { level = debug, format = loud }\n                                  ^',
    ],
    [
      '<<<<<<< HEAD\nhttp.port = 1',
      'server.conf:3:1: Found a mark of an unfinished merge; keep one of the two versions and remove the marks.\n    <<<<<<< HEAD\n    ^',
    ],
    ['}', 'server.conf:3:1: Found a } that closes nothing; remove it, or add the { that it belongs to.\n    }\n    ^'],
  ])('%j', (text, expected) => {
    expect(message(text)).toBe(expected);
  });

  test('a long line is cut around the caret, and obeyed by no terminal', () => {
    const items = Array(40).fill('10s').join(', ');
    const shown = message(`delivery.retry = [${items}, "x\\u202e", 10s\u202e\u0007, ${items}] \u001b`).split('\n');
    expect(shown[1]!.length).toBeLessThanOrEqual(104);
    expect(shown.join('\n')).not.toMatch(/[^\P{C}\n]/u);
  });
});

describe('no line is shown that may hold a secret', () => {
  test.each([
    'services.postgresql.password "hunter2"',
    'password hunter2',
    'services { postgresql { port = x, password = hunter2 } }',
    'services.postgresql.port = x # hunter2@old',
    'services.postgresql.pool-size = x # the password is hunter2',
    'services.postgresql.password = a\nhunter2',
    'services.postgresql.password = """\nport = hunter2\n""" http.port = x: y',
    'services.postgresql.host = "postgres://x:hunter2/y"',
    'services.smtp.user =\n  hunter2 : x',
    'http.base-uri = "https://hunter2@a"',
    'http { port = x, zzz = hunter2 }',
    'unknown { port = x, hunter2 }',
    'http.port = hunter2x { password }',
    'services.postgresql = hunter2',
    '/* hunter2 */',
    'services.smtp.password = [\n  port = hunter2 : x\n]',
  ])('%j', (text) => {
    const lines = message(text).split('\n');
    expect(lines[0]).toMatch(/^server\.conf:[345]:\d+: /);
    expect(lines.filter((line) => line.startsWith('    '))).toEqual([]);
  });
});

describe('the name of a key that nobody knows', () => {
  test.each([
    ['zzz = 1\nhttp.port = x', 'server.conf:3:7: zzz: unknown key'],
    ['http { port = x, zzz = 2 }', 'server.conf:3:24: http.zzz: unknown key'],
    ['services.postgresql.password = abc,zzz=9\nhttp.port = x', 'server.conf:3:40: (hidden): unknown key'],
    [
      'services.postgresql { pasword = abc,zzz=9 }\nhttp.port = x',
      'server.conf:3:41: services.postgresql.(hidden): unknown key, did you mean services.postgresql.db?',
    ],
  ])('is told where it begins a field, and hidden behind a value: %s', (text, expected) => {
    expect(message(text).split('\n')).toContain(expected);
  });
});
