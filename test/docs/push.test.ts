import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { CONFIG_SCHEMA } from '../../src/config/schema.ts';
import { loadHocon, valueAt, type Value } from '../../packages/hocon/src/index.ts';
import { failureCategories } from '../../src/outbound/failure.ts';
import { root } from '../cli/program.ts';

const page = readFileSync(join(root, 'docs/push.md'), 'utf8');
const sources = readdirSync(join(root, 'src/push'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(join(root, 'src/push', name), 'utf8'))
  .join('\n');

/** Rows of the table of categories, as `category outcome`. */
const explained = [
  ...page.matchAll(/^\| (?<names>(?:`[a-z_ ]+`(?:, )?)+) +\| (?<outcome>`[a-z]+`[^|]*|given up) +\|.*\|.*\|$/gm),
];
const rows = new Set(
  explained.flatMap(({ groups }) =>
    [...groups!['names']!.matchAll(/`(?<name>[^`]+)`/g)].map(
      (each) => `${each.groups!['name']!} ${/[a-z]+/.exec(groups!['outcome']!)![0]}`,
    ),
  ),
);

describe('the page about push', () => {
  test('explains every category that a driver has, with what becomes of the push', () => {
    const made = [...sources.matchAll(/\b(?<outcome>failed|unregistered|refused)Outcome\(\s*'(?<name>[a-z ]+)'/g)].map(
      ({ groups }) => `${groups!['name']!} ${groups!['outcome']!}`,
    );
    expect(made.length).toBeGreaterThan(20);
    expect([...new Set(made)].filter((each) => !rows.has(each))).toEqual([]);
  });

  test('explains what a connection can fail with', () => {
    // The category `signature` is left out: the server checks keys before it signs a push with them.
    const names = failureCategories.filter((name) => name !== 'signature');
    expect(names.filter((name) => ![...rows].some((row) => row.startsWith(`${name} `)))).toEqual([]);
  });

  test('names keys of the configuration that there are', () => {
    const blocks = [...page.matchAll(/```hocon\n(?<text>[^]*?)```/g)].map(({ groups }) => groups!['text']!);
    expect(blocks.length).toBeGreaterThan(2);
    for (const text of blocks) {
      const tree = loadHocon([{ name: 'page', text }], { env: {} });
      const found = Object.keys(CONFIG_SCHEMA).filter((key) => valueAt(tree, key.split('.')) !== null);
      expect(countLeaves(tree)).toBe(found.length);
    }
    const known = Object.keys(CONFIG_SCHEMA);
    for (const [, key] of page.matchAll(/`((?:services|push|limits|retention|delivery|http)\.[a-z0-9.-]+)`/g)) {
      expect([key, known.some((each) => each === key || each.startsWith(`${key!}.`))]).toEqual([key, true]);
    }
  });
});

/** The number of values in a tree of settings; a list counts as one. */
function countLeaves(value: Value): number {
  if (value.kind !== 'object') return 1;
  return [...value.entries.values()].reduce((sum, each) => sum + countLeaves(each), 0);
}
