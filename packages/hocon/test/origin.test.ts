import { describe, expect, test } from '@jest/globals';
import { loadHocon, valueAt } from '../src/index.ts';

function originAt(texts: readonly string[], path: readonly string[], env: Record<string, string> = {}): string {
  const sources = texts.map((text, index) => ({ name: `t${index + 1}`, text }));
  const origin = valueAt(loadHocon(sources, { env }), path)?.origin;
  return origin === undefined ? 'no value' : `${origin.file}:${origin.line}:${origin.column}`;
}

describe('The origin of a value', () => {
  test.each([
    ['is where it starts', 'a = 1\n  b : \t"x"', ['b'], 't1:2:8'],
    ['is inside an array', 'a = [\n 1, { b = 2 } ]', ['a'], 't1:1:5'],
    ['counts columns after a CRLF and a byte order mark', '\uFEFFx = 1\r\ny = 2', ['y'], 't1:2:5'],
    ['of a concatenation is its start', 'a = foo bar', ['a'], 't1:1:5'],
    ['of an object made by a dotted key is the key', 'x = 1\na.b = 1', ['a'], 't1:2:1'],
    ['behind a substitution is its definition', 'a = ${b}\nb = ${c}\nc =   5', ['a'], 't1:3:7'],
    ['of a field behind a substitution is its definition', 'a = ${b} { y = 1 }\nb { x = 5 }', ['a', 'x'], 't1:2:9'],
    ['of a text joined with a substitution is the text', 'a = "x"${b}\nb = 5', ['a'], 't1:1:5'],
    ['of a later definition is the later one', 'a = 1\na = 2', ['a'], 't1:2:5'],
    ['of a merged object is its last part', 'a { b = 1 }\na { c = 1 }', ['a'], 't1:2:3'],
  ])('%s', (_name, text, path, expected) => {
    expect(originAt([text], path)).toBe(expected);
  });

  test('names the source it comes from', () => {
    expect(originAt(['a { x = 1, y = 2 }', '\na.x = 3'], ['a', 'x'])).toBe('t2:2:7');
    expect(originAt(['a { x = 1, y = 2 }', '\na.x = 3'], ['a', 'y'])).toBe('t1:1:16');
  });

  test('of an environment variable is the substitution', () => {
    expect(originAt(['a = 1\na = ${?HOME}'], ['a'], { HOME: '/' })).toBe('t1:2:5');
  });
});

describe('valueAt', () => {
  const root = loadHocon([{ name: 't', text: 'a { b = [1], "c.d" = null }' }], { env: {} });

  test('follows keys', () => {
    expect(valueAt(root, ['a', 'c.d'])?.kind).toBe('null');
    expect(valueAt(root, [])).toBe(root);
  });

  test('is null where there is nothing', () => {
    expect(valueAt(root, ['x'])).toBeNull();
    expect(valueAt(root, ['a', 'b', '0'])).toBeNull();
    expect(valueAt(root, ['a', 'constructor'])).toBeNull();
  });
});

describe('A number', () => {
  test('keeps what was written', () => {
    const root = loadHocon([{ name: 't', text: 'a = 1.10' }], { env: {} });
    expect(valueAt(root, ['a'])).toMatchObject({ kind: 'number', text: '1.10', number: 1.1 });
  });
});
