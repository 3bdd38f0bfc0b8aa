import { expect, test } from '@jest/globals';
import { HoconError, loadHocon } from '../src/index.ts';
import { within } from '../../../test/run/machine-speed.ts';
import { plain } from './plain.ts';

/** Documents with every construct; mutations of them reach most of the reader. */
const SEEDS = [
  'a { b = 1, c.d = [1, 2, {x : y}] }\n# comment\ne = ${a.b} text ${?nope}\nf += 1\nf += "q"\n',
  'path = "/bin"\npath = ${path}":/x"\n"k.e\\u0041y" : """tri"ple""""\nx = ${a} { z = null }\na : { y : true }',
  '{ "json" : { "n" : -1.5e+3, "s" : "\\ud83d\\ude00", "l" : [ [ ], { } ] } }',
  'include "/no/such.conf", include file("/no/such")\na = ${b}\nb = ${c}\nc = 1\nc = ${c}x\nd = [${?d}]\n',
  'a = ${b}${b}\nb = ${c}${c}\nc = [1]\no = {p : ${?o.q}, q : ${?o.p}}\no = ${o} {r : 1}',
];
const TOKENS = [
  '{',
  '}',
  '[',
  ']',
  '=',
  ':',
  ',',
  '+=',
  '${',
  '${?',
  '"',
  '"""',
  '\\',
  '\\u',
  '.',
  '\n',
  ' ',
  '#',
  '//',
  'include ',
  'a',
  'b',
  '1',
  'null',
  '\0',
  '\u2028',
  '\ud800',
];

/** mulberry32: the same numbers for the same seed on every machine. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

function mutate(text: string, next: (below: number) => number): string {
  const at = next(text.length + 1);
  const token = TOKENS[next(TOKENS.length)] ?? '';
  const kind = next(4);
  if (kind === 0) return text.slice(0, at) + token + text.slice(at);
  if (kind === 1) return text.slice(0, at) + text.slice(at + 1 + next(4));
  if (kind === 2) return text.slice(0, at) + token + text.slice(at + 1);
  const from = next(text.length + 1);
  return text.slice(0, at) + text.slice(from, from + next(30)) + text.slice(at);
}

test.each(SEEDS)('%j is read before it is mutated', (text) => {
  expect(plain(loadHocon([{ name: 't', text }], { env: {} }))).toEqual(expect.anything());
});

test('Whatever is done to a document, it is read or refused with a place, and quickly', () => {
  const outcomes = { read: 0, refused: 0 };
  let slowestMs = 0;
  for (let seed = 0; seed < 4000; seed++) {
    const next = random(seed);
    let text = SEEDS[seed % SEEDS.length] ?? '';
    for (let count = 1 + next(2); count > 0; count--) text = mutate(text, next);
    const started = performance.now();
    try {
      JSON.stringify(plain(loadHocon([{ name: 't', text }], { env: { b: 'env' } })));
      outcomes.read++;
    } catch (error) {
      if (!(error instanceof HoconError)) throw new Error(`Seed ${seed}: ${JSON.stringify(text)}`, { cause: error });
      for (const line of error.message.split('\n')) expect(line).toMatch(/^t:\d+:\d+: .*\.$/s);
      outcomes.refused++;
    }
    slowestMs = Math.max(slowestMs, performance.now() - started);
  }
  expect(outcomes.read).toBeGreaterThan(500);
  expect(outcomes.refused).toBeGreaterThan(1000);
  expect(slowestMs).toBeLessThan(within(2000));
});
