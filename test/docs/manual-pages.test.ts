import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { documentedProgram, leavesOf, nameOf } from '../../scripts/command-line-page.ts';
import { manualPage, prose, roff } from '../../scripts/roff.ts';
import { settingEntries } from '../../src/config/schema.ts';

const folder = join(import.meta.dirname, '../../docs/man');
const pages = readdirSync(folder);

function run(command: string, ...args: string[]): { status: number | null; output: string } | null {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C.UTF-8' },
  });
  return error === undefined ? { status, output: stdout + stderr } : null;
}

describe('the manual pages', () => {
  test('are klatch(1) and klatch.conf(5)', () => {
    expect(pages).toEqual(['klatch.1', 'klatch.conf.5']);
  });

  test.each(pages)('%s is without a fault to mandoc and man, where these are installed', (page) => {
    const file = join(folder, page);
    for (const found of [
      run('mandoc', '-Tlint', file),
      run('man', '--warnings', '-E', 'UTF-8', '-l', '-Tutf8', '-Z', file),
    ]) {
      if (found === null) continue;
      expect(
        found.output.split('\n').filter((line) => /mandoc:|warning|error/i.test(line) && !line.startsWith('t')),
      ).toEqual([]);
      expect(found.status).toBe(0);
    }
  });

  test('name every command and every key', () => {
    const [commands, keys] = pages.map((page) => readFileSync(join(folder, page), 'utf8').split('\n'));
    for (const command of leavesOf(documentedProgram())) expect(commands).toContain(`.SS ${roff(nameOf(command))}`);
    for (const [key] of settingEntries()) expect(keys).toContain(`\\fB${roff(key)}\\fR`);
  });

  test('take no text for a request, and show what roff would swallow', () => {
    expect(roff(String.raw`.a\b 'c' ${'`'} ~ ^ -`)).toBe(String.raw`\&.a\eb \(aqc\(aq \(ga \(ti \(ha \-`);
    expect(prose('Run `klatch -h` once. Then go on.')).toBe('Run \\fBklatch \\-h\\fR once.\nThen go on.');
    const long = `${'x'.repeat(70)} ${'.y'.repeat(8)}`;
    const lines = manualPage({ name: 'a', section: 1, date: '2026-01-01' }, [long]).split('\n');
    expect(lines).toContain(`\\&${'.y'.repeat(8)}`);
  });
});
