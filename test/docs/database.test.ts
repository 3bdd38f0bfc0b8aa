import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { root } from '../cli/program.ts';

const page = readFileSync(join(root, 'docs/database.md'), 'utf8');
const sources = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
  .join('\n')
  // Joins sentences that the source splits over two lines.
  .replace(/['`] \+\s*['`]/g, '');

describe('docs/database.md', () => {
  test('quotes refusals that the program has', () => {
    const table = page.slice(page.indexOf('### When it is refused'), page.indexOf('## The embedded one'));
    const [, , ...rows] = table.split('\n').filter((line) => line.startsWith('|'));
    const quotes = rows.map((row) => row.split('|')[1]!.replace('…', '').trim());
    expect(quotes.length).toBeGreaterThan(3);
    expect(quotes.filter((quote) => !sources.includes(quote))).toEqual([]);
  });

  test('names options that setup has', () => {
    const options = readFileSync(join(root, 'docs/command-line.md'), 'utf8');
    const named = [...new Set(page.match(/--(?:local|embedded|cluster|socket|db|base)[a-z-]*/g))];
    expect(named.length).toBeGreaterThan(6);
    expect(named.filter((option) => !options.includes(`\`${option}`))).toEqual([]);
  });
});
