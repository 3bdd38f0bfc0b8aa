import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { loadHocon, valueAt, type LoadOptions } from '../src/index.ts';
import { messageOf, plain } from './plain.ts';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'klatch-hocon-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function write(files: Readonly<Record<string, string | Buffer>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

const load = (files: Readonly<Record<string, string | Buffer>>, options: Partial<LoadOptions> = {}): unknown => {
  write(files);
  return plain(loadHocon([{ path: join(folder, 'main.conf') }], { env: {}, ...options }));
};

/** The message of the error, without the path of the folder. */
const problem = (files: Readonly<Record<string, string | Buffer>>, options: Partial<LoadOptions> = {}): string =>
  messageOf(() => load(files, options)).replaceAll(`${folder}/`, '');

describe('An include statement', () => {
  test.each([
    'include "x.conf"',
    'include file("x.conf")',
    'include required("x.conf")',
    'include required( file( "x.conf" ) )',
    'include\n"x.conf"',
  ])('reads a file: %j', (statement) => {
    expect(load({ 'main.conf': `${statement}\nb = 2`, 'x.conf': 'a = 1' })).toEqual({ a: 1, b: 2 });
  });

  test('merges where it stands: over what is before it, under what is after it', () => {
    const main = 'a = 1, b = 1, o { x = 1 }\ninclude "x.conf", b = 3';
    expect(load({ 'main.conf': main, 'x.conf': '{ a = 2, b = 2, o { y = 2 } }' })).toEqual({
      a: 2,
      b: 3,
      o: { x: 1, y: 2 },
    });
  });

  test('works in an object at any level and in an object in an array', () => {
    const main = 'o { p { include "x.conf" }, q.r { include "x.conf", b = 1 } }, l = [ { include "x.conf" } ]';
    expect(load({ 'main.conf': main, 'x.conf': 'a = 1, b = ${a}' })).toEqual({
      o: { p: { a: 1, b: 1 }, q: { r: { a: 1, b: 1 } } },
      l: [{ a: 1, b: 1 }],
    });
  });

  test('names a file relative to the including file, whatever its folder', () => {
    const files = {
      'main.conf': 'include "d/x.conf"',
      'd/x.conf': 'include "e/y.conf"',
      'd/e/y.conf': 'include "../z.conf"',
      'd/z.conf': 'z = 1',
    };
    expect(load(files)).toEqual({ z: 1 });
  });

  test('takes an absolute path, also in a text that is no file', () => {
    write({ 'x.conf': 'a = 1' });
    const text = `include "${join(folder, 'x.conf')}"`;
    expect(plain(loadHocon([{ name: 't', text }], { env: {} }))).toEqual({ a: 1 });
    expect(messageOf(() => loadHocon([{ name: 't', text: 'include "x.conf"' }], { env: {} }))).toBe(
      "t:1:1: 'x.conf' is relative, but this text has no folder; write an absolute path.",
    );
  });

  test('without a suffix reads the .json file and over it the .conf file, else the name as it is', () => {
    expect(load({ 'main.conf': 'include "x"', 'x.json': '{"a":1,"b":1}', 'x.conf': 'b = 2', x: 'c = 3' })).toEqual({
      a: 1,
      b: 2,
    });
    expect(load({ 'main.conf': 'include "y"', y: 'c = 3' })).toEqual({ c: 3 });
    expect(load({ 'main.conf': 'include "z.local"', 'z.local.conf': 'd = 4' })).toEqual({ d: 4 });
  });

  test('is silently empty where the file is missing', () => {
    expect(load({ 'main.conf': 'include "no.conf", include "no", include file("main.conf/no"), a = 1' })).toEqual({
      a: 1,
    });
  });

  test('gives values the path of the included file as it was resolved', () => {
    write({ 'main.conf': 'include "d/../x.conf"', 'x.conf': '\n a = 1' });
    const root = loadHocon([{ path: join(folder, 'main.conf') }], { env: {} });
    expect(valueAt(root, ['a'])?.origin).toEqual({ file: join(folder, 'x.conf'), line: 2, column: 6 });
  });
});

describe('A substitution in an included file', () => {
  test('is looked up from the place of the include first, in the merged whole', () => {
    const x = 'x = 10, y = ${x}';
    expect(load({ 'main.conf': 'a : { include "x.conf" }', 'x.conf': x })).toEqual({ a: { x: 10, y: 10 } });
    expect(load({ 'main.conf': 'a : { include "x.conf" }\na : { x : 42 }', 'x.conf': x })).toEqual({
      a: { x: 42, y: 42 },
    });
  });

  test('is looked up from the root next, then in the environment', () => {
    const files = {
      'main.conf': 'r = 1, x = root\na { include "x.conf" }',
      'x.conf': 'x = own, l = [ ${r} ${x} ${E} ]',
    };
    expect(load(files, { env: { E: 'env' } })).toEqual({ r: 1, x: 'root', a: { x: 'own', l: ['1 own env'] } });
  });

  test('sees the places of all includes around it', () => {
    const files = {
      'main.conf': 'a { include "x.conf" }',
      'x.conf': 'host = h, sub { include "y.conf" }',
      'y.conf': 'url = ${host}/${port}, port = 1',
    };
    expect(load(files)).toEqual({ a: { host: 'h', sub: { url: 'h/1', port: 1 } } });
  });

  test('can refer to an earlier value of its own key, and += adds to it', () => {
    const files = {
      'main.conf': 'p = no, a { p = "/bin", l = [1], include "x.conf" }',
      'x.conf': 'p = ${p}":/x", l += 2',
    };
    expect(load(files)).toEqual({ p: 'no', a: { p: '/bin:/x', l: [1, 2] } });
  });
});

describe('An include statement is refused', () => {
  test.each([
    [
      'include url("http://h/x")',
      'main.conf:1:9: Found include url(…), which is not supported: only files can be included, as in include "name.conf".',
    ],
    [
      'include classpath("x")',
      'main.conf:1:9: Found include classpath(…), which is not supported: only files can be included, as in include "name.conf".',
    ],
    [
      'include required(url("x"))',
      'main.conf:1:18: Found include url(…), which is not supported: only files can be included, as in include "name.conf".',
    ],
    [
      'include "https://h/x"',
      "main.conf:1:9: Found the address 'https://h/x' after include: only files can be included, nothing is fetched.",
    ],
    [
      'include file("file:///x")',
      "main.conf:1:14: Found the address 'file:///x' after include: only files can be included, nothing is fetched.",
    ],
    ['include ""', 'main.conf:1:9: The name of the file to include is empty.'],
    ['include "a\\u0000"', 'main.conf:1:9: The name of the file to include holds a NUL character.'],
    [
      'include x.conf',
      `main.conf:1:9: Found 'x.conf' after include; expected a file name in double quotes, file("…") or required("…"). A key named include needs double quotes.`,
    ],
    [
      'include = 1',
      `main.conf:1:9: Found '=' after include; expected a file name in double quotes, file("…") or required("…"). A key named include needs double quotes.`,
    ],
    [
      'include ${x}',
      `main.conf:1:9: Found '$' after include; expected a file name in double quotes, file("…") or required("…"). A key named include needs double quotes.`,
    ],
    ['include file(x)', "main.conf:1:14: Found 'x)'; expected a file name in double quotes."],
    ['include file "x"', `main.conf:1:14: Found '"' after file; expected (.`],
    ['include required("x"', 'main.conf:1:21: Found the end of the file; expected the ) that closes required(.'],
    ['include "x" "y"', `main.conf:1:13: Found '"'; expected a comma, a new line or the end of the file.`],
    [
      'a = 1\ninclude required("no.conf")',
      'main.conf:2:1: Cannot read no.conf: there is no such file, and it is required.',
    ],
    [
      'include required("no")',
      'main.conf:1:1: Cannot read no.json or no.conf or no: there is no such file, and it is required.',
    ],
    ['include "main.conf"', 'main.conf:1:1: main.conf would include itself: main.conf includes main.conf.'],
    [
      'a { include "loop.conf" }',
      'loop.conf:1:5: main.conf would include itself: main.conf includes loop.conf includes main.conf.',
    ],
    ['include "link.conf"', 'main.conf:1:1: link.conf would include itself: main.conf includes link.conf.'],
    ['include "d"', 'main.conf:1:1: Cannot read d: it is a folder.'],
    [
      'include "array.conf"',
      'array.conf:1:1: Found an array; expected keys and values, since a configuration file holds an object.',
    ],
    ['include "bad.conf"', "bad.conf:2:5: Found ']'; expected a value."],
  ])('%j', (main, message) => {
    symlinkSync('main.conf', join(folder, 'link.conf'));
    write({ 'loop.conf': 'b { include "main.conf" }', 'd/x': '', 'array.conf': '[]', 'bad.conf': 'a = 1\nb = ]' });
    expect(problem({ 'main.conf': main })).toBe(message);
  });
});

describe('A file that cannot be read', () => {
  test('is named with the reason, a source as well as an include', () => {
    expect(messageOf(() => loadHocon([{ path: 'no/such.conf' }], { env: {} }))).toBe(
      'no/such.conf:1:1: Cannot read no/such.conf: there is no such file (ENOENT).',
    );
    expect(messageOf(() => loadHocon([{ path: folder }], { env: {} }))).toBe(
      `${folder}:1:1: Cannot read ${folder}: it is a folder.`,
    );
    symlinkSync('self.conf', join(folder, 'self.conf'));
    expect(problem({ 'main.conf': 'include "self.conf"' })).toBe(
      'main.conf:1:1: Cannot read self.conf: its symbolic links lead in a circle (ELOOP).',
    );
  });

  test('without permission is an error even where a missing one is none', () => {
    write({ 'secret.conf': 'a = 1', 'main.conf': 'include "secret.conf"' });
    chmodSync(folder, 0o755);
    chmodSync(join(folder, 'secret.conf'), 0);
    // Root may read every file, so the call runs as another user.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      const message = messageOf(() => loadHocon([{ path: join(folder, 'main.conf') }], { env: {} }));
      expect(message.replaceAll(`${folder}/`, '')).toBe(
        'main.conf:1:1: Cannot read secret.conf: permission is denied (EACCES).',
      );
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });

  test('because it is a named pipe or a device is refused without waiting for it', () => {
    execFileSync('mkfifo', [join(folder, 'pipe.conf')]);
    expect(problem({ 'main.conf': 'include "pipe.conf"' })).toBe(
      'main.conf:1:1: Cannot read pipe.conf: it is not a regular file.',
    );
    expect(problem({ 'main.conf': 'include "/dev/zero"' })).toBe(
      'main.conf:1:1: Cannot read /dev/zero: it is not a regular file.',
    );
  });

  test('because it is not UTF-8 names the line and column', () => {
    const message = 'Found bytes that are not UTF-8; save the file in the encoding UTF-8.';
    expect(problem({ 'main.conf': Buffer.from('a = "ö"\nb = "gr\xf6\xdfe"\n', 'latin1') })).toBe(
      `main.conf:1:6: ${message}`,
    );
    expect(problem({ 'main.conf': Buffer.concat([Buffer.from('a = "ö"\nb = "ä'), Buffer.from([0xff, 0x22])]) })).toBe(
      `main.conf:2:7: ${message}`,
    );
    expect(problem({ 'main.conf': Buffer.from([0x61, 0x3d, 0xc3]) })).toBe(`main.conf:1:3: ${message}`);
    expect(problem({ 'main.conf': Buffer.from([0x61, 0x3d, 0xed, 0xa0, 0x80]) })).toBe(`main.conf:1:3: ${message}`);
  });
});

describe('Includes are bounded', () => {
  test('in number', () => {
    const files = { 'main.conf': 'include "x.conf"\n'.repeat(4), 'x.conf': 'a = 1' };
    expect(load(files, { maxIncludedFiles: 4 })).toEqual({ a: 1 });
    expect(problem(files, { maxIncludedFiles: 3 })).toBe('main.conf:4:1: More than 3 files are included.');
  });

  test('in bytes, together with the sources', () => {
    const files = { 'main.conf': 'include "x.conf"', 'x.conf': 'a = 1' };
    expect(load(files, { maxBytesOfAllSources: 21 })).toEqual({ a: 1 });
    expect(problem(files, { maxBytesOfAllSources: 20 })).toBe(
      'main.conf:1:1: Cannot read x.conf: it is larger than the 4 bytes that are left for it.',
    );
  });

  test('in depth, together with the files around them', () => {
    const files = { 'main.conf': 'a.b { include "x.conf" }', 'x.conf': 'c { d = 1 }' };
    expect(load(files, { maxDepth: 6 })).toEqual({ a: { b: { c: { d: 1 } } } });
    expect(problem(files, { maxDepth: 5 })).toBe(
      'x.conf:1:5: Objects, arrays and keys are nested more than 5 deep here.',
    );
  });
});
