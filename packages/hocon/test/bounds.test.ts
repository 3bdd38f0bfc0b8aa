import { describe, expect, test } from '@jest/globals';
import { loadHocon, valueAt } from '../src/index.ts';
import { within } from '../../../test/run/machine-speed.ts';
import { messageOf, read } from './plain.ts';

const nodesExceeded =
  /^t:\d+:\d+: The configuration grows beyond 1000000 values here; look for substitutions that multiply\.$/;

describe('Nesting is bounded before the stack is', () => {
  test.each([
    ['objects', 'a{'.repeat(1e5)],
    ['arrays', `a=${'['.repeat(1e5)}`],
    ['closed arrays', `a=${'['.repeat(1e5)}${']'.repeat(1e5)}`],
    ['keys', `${'a.'.repeat(1e5)}a = 1`],
    ['arrays and objects', `a=${'[{b='.repeat(1e5)}`],
  ])('of %s', (_kind, text) => {
    expect(messageOf(() => read(text))).toMatch(
      /^t:1:\d+: Objects, arrays and keys are nested more than 200 deep here\.$/,
    );
  });

  test('and as much as the bound allows is read', () => {
    expect(messageOf(() => read(`a=${'['.repeat(199)}${']'.repeat(199)}`))).toMatch(/^no error/);
    expect(messageOf(() => read(`a=${'['.repeat(200)}${']'.repeat(200)}`))).toMatch(/nested more than 200 deep/);
  });

  test('of a chain of substitutions', () => {
    const chain = (length: number): string =>
      Array.from({ length }, (_, index) => `k${index} = \${k${index + 1}}\n`).join('');
    expect(messageOf(() => read(`${chain(150)}k150 = 1`))).toMatch(/^no error/);
    expect(messageOf(() => read(`${chain(20_000)}k20000 = 1`))).toMatch(
      /Values and substitutions lead more than 200 levels deep here/,
    );
  });

  test('of values that substitutions nest', () => {
    const nested = Array.from({ length: 50 }, (_, index) => `k${index} = [[[[[ \${k${index + 1}} ]]]]]\n`).join('');
    expect(messageOf(() => read(`${nested}k50 = 1`))).toMatch(
      /Values and substitutions lead more than 200 levels deep here/,
    );
  });

  test('of a key that refers to its earlier value again and again', () => {
    expect(messageOf(() => read(`a = x\n${'a = ${a}y\n'.repeat(1000)}`))).toMatch(
      /lead more than 200 levels deep here/,
    );
  });
});

describe('Growth by substitution is bounded', () => {
  const laughs = (first: string, next: (key: string) => string): string =>
    `k0 = ${first}\n${Array.from({ length: 60 }, (_, index) => `k${index + 1} = ${next(`\${k${index}}`)}\n`).join('')}`;

  test.each([
    ['of objects', laughs('{}', (key) => `{ a : ${key}, b : ${key} }`)],
    ['of arrays', laughs('[]', (key) => `[ ${key}, ${key} ]`)],
    ['of joined arrays', laughs('[1]', (key) => `${key} ${key}`)],
    ['of joined text', laughs('ha', (key) => `${key}${key}`)],
    ['of merged objects', laughs('{ a : 1 }', (key) => `${key} ${key}`)],
    ['of many definitions of a key', `${'a = ${b}\n'.repeat(30_000)}${'b = ${c}\n'.repeat(30_000)}c { x = 1 }`],
    [
      'of many look-ups',
      `${'b = ${?c}\n'.repeat(2000)}${Array.from({ length: 20_000 }, (_, index) => `k${index} = \${?b}\n`).join('')}`,
    ],
    [
      'of many keys merged many times',
      `b { ${Array.from({ length: 30_000 }, (_, key) => `k${key}=1`).join(',')} }\na = ${'${b}'.repeat(10_000)}`,
    ],
    ['of many definitions merged many times', `${'b.x = ${?y}\n'.repeat(20_000)}a = ${'${b}'.repeat(10_000)}`],
    ['of many values side by side', `b = {}\na = ${'${b}'.repeat(200_000)}`],
    [
      'of optional circles',
      Array.from({ length: 40 }, (_, key) =>
        Array.from({ length: 40 }, (_, other) => `k${key} = \${?k${other}}\n`).join(''),
      ).join(''),
    ],
  ])('%s', (kind, text) => {
    const started = performance.now();
    const message = messageOf(() => read(text));
    expect(performance.now() - started).toBeLessThan(within(10_000));
    // The specification defines no result for circles of optional substitutions; the reader only has to return some
    // result.
    if (kind !== 'of optional circles') expect(message).toMatch(nodesExceeded);
  });

  test('and adding to an array many times is not mistaken for it', () => {
    expect(read('a += 1\n'.repeat(20_000))).toEqual({ a: Array.from({ length: 20_000 }, () => 1) });
  });

  test('and so is the size of a text', () => {
    expect(messageOf(() => read('a = 1', { maxBytesOfAllSources: 4 }))).toBe(
      't:1:1: The configuration exceeds 4 bytes here.',
    );
    expect(read('a = ö', { maxBytesOfAllSources: 6 })).toEqual({ a: 'ö' });
    expect(messageOf(() => read('a = ö', { maxBytesOfAllSources: 5 }))).toMatch(/exceeds 5 bytes/);
  });
});

describe('Names that JavaScript gives a meaning', () => {
  test('are keys like any other and change no prototype', () => {
    const text =
      '__proto__ { polluted = 1 }, constructor.prototype.polluted = 2, a.__proto__.b = 3, a.toString = 4, c = ${a.__proto__.b}';
    const root = loadHocon([{ name: 't', text }], { env: {} });
    expect([...root.entries.keys()]).toEqual(['__proto__', 'constructor', 'a', 'c']);
    expect(valueAt(root, ['__proto__', 'polluted'])).toMatchObject({ number: 1 });
    expect(valueAt(root, ['a', '__proto__', 'b'])).toMatchObject({ number: 3 });
    expect(valueAt(root, ['c'])).toMatchObject({ number: 3 });
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(Object.getPrototypeOf(root)).toBe(Object.prototype);
  });

  test('and code in a text stay what they are', () => {
    const text = 'a = "${process.exit(1)}", b = """${globalThis.x = 1}""", c = ${?process.env}';
    expect(read(text)).toEqual({ a: '${process.exit(1)}', b: '${globalThis.x = 1}' });
  });
});
