import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { renderCommandLine } from '../../scripts/command-line-page.ts';
import { exitCodes, exitCodeMeanings } from '../../src/cli/core/exit-codes.ts';
import { root } from './program.ts';

const page = readFileSync(join(root, 'docs/command-line.md'), 'utf8');

/** A module that Node loads before the program, so that the program sees the properties of another machine. */
const OTHER_MACHINE = `
import os from 'node:os';
import { syncBuiltinESMExports } from 'node:module';
Object.assign(os, {
  hostname: () => 'another-machine',
  homedir: () => '/another/home',
  tmpdir: () => '/another/tmp',
  userInfo: () => ({ username: 'another' }),
  availableParallelism: () => 77,
  cpus: () => [],
  totalmem: () => 77e9,
});
syncBuiltinESMExports();
`;

test('the generated pages are the same whichever machine makes them', () => {
  const { status, stderr } = spawnSync(
    process.execPath,
    [`--import=data:text/javascript,${encodeURIComponent(OTHER_MACHINE)}`, join(root, 'scripts/docs.ts'), '--check'],
    { encoding: 'utf8', env: { ...process.env, TZ: 'Pacific/Kiritimati', HOME: '/another/home', COLUMNS: '40' } },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

describe('docs/command-line.md', () => {
  test('is what the program says of itself now', () => {
    expect(page).toBe(renderCommandLine());
  });

  test('has a heading for everything that it links to', () => {
    const headings = [...page.matchAll(/^#+ (.+)$/gm)].map((match) => match[1]!.toLowerCase().replaceAll(' ', '-'));
    const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map((match) => match[1]!);
    expect(links.length).toBeGreaterThan(20);
    expect(links.filter((link) => !headings.includes(link))).toEqual([]);
  });

  test('shows for each command how it is called, and an example', () => {
    const sections = page.split(/^### /m).slice(1);
    expect(sections.length).toBeGreaterThan(20);
    for (const text of sections) {
      const name = text.split('\n', 1)[0]!;
      expect(text).toContain(`\nUsage: \`${name}`);
      expect(text.match(/```sh\n([\s\S]+?)\n```/)?.[1]).toContain('klatch ');
    }
  });

  test('has every exit code, as the README has', () => {
    const rows = (text: string): string[] =>
      [...text.matchAll(/^\| (\d+) +\| (.+?) +\|$/gm)].map((m) => `${m[1]} ${m[2]}`);
    const codes = Object.values(exitCodes).map((code) => `${code} ${exitCodeMeanings[code]}`);
    expect(rows(page)).toEqual(codes);
    expect(rows(readFileSync(join(root, 'README.md'), 'utf8'))).toEqual(codes);
  });
});
