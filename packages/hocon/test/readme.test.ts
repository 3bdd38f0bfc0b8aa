import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { loadHocon, valueAt } from '../src/index.ts';

test('the example of the README gives the values and origins that its table names', () => {
  const page = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  const text = /```hocon\n([^]*?)```/.exec(page)![1]!;
  const root = loadHocon([{ name: 'example.conf', text }], { env: {} });
  const rows = [...page.matchAll(/^\| `([\w.]+)` +\| (\w+) +\| (?:`(.+)`)? *\| (example\.conf:\S+) +\|$/gm)];
  expect(rows.length).toBe(5);
  for (const [, path, kind, shown, origin] of rows) {
    const value = valueAt(root, path!.split('.'))!;
    const { file, line, column } = value.origin;
    const found = { path, kind: value.kind, shown: 'text' in value ? value.text : undefined };
    expect({ ...found, origin: `${file}:${line}:${column}` }).toEqual({ path, kind, shown, origin });
  }
});
