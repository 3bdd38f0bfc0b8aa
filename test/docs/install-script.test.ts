import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';

const root = resolve(import.meta.dirname, '../..');
const script = readFileSync(join(root, 'install.sh'), 'utf8');
const page = readFileSync(join(root, 'docs/install-script.md'), 'utf8');

/** The first cell of each row of the table below a heading. */
function firstCells(heading: string): string[] {
  const section = page.split(`\n## ${heading}\n`)[1]!.split('\n## ')[0]!;
  const rows = section.split('\n').filter((line) => line.startsWith('| '));
  return rows.slice(2).map((row) => row.split('|')[1]!.replaceAll('`', '').trim());
}

describe('the page about install.sh', () => {
  test('explains every option that its help lists', () => {
    const help = execFileSync('sh', [join(root, 'install.sh'), '--help'], { encoding: 'utf8' });
    const options = [...help.matchAll(/^ {2}(--[a-z-]+(?: [A-Z]+)?) /gm)].map(([, option]) => option!);
    expect(options.length).toBeGreaterThan(5);
    expect(firstCells('Options').toSorted()).toEqual(options.toSorted());
  });

  test('explains every status that it ends with', () => {
    const named = /^FAILED=\d+ [^]*?\n\n/m.exec(script)![0].matchAll(/[A-Z_]+=(\d+)/g);
    const signals = script.matchAll(/^ {2}trap 'stop_on [A-Z]+ (\d+)'/gm);
    const all = ['0', ...[...named, ...signals].map(([, status]) => status!)];
    expect(all.length).toBeGreaterThan(12);
    expect(firstCells('Exit codes')).toEqual(all.toSorted((a, b) => Number(a) - Number(b)));
  });
});
