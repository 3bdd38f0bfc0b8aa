import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { root } from '../cli/program.ts';
import { MINIMAL } from '../config/folder.ts';
import { load } from '../config/load.ts';

const page = readFileSync(join(root, 'README.md'), 'utf8');

describe('README.md', () => {
  test('lists each page once', () => {
    const pages = [...page.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(([, link]) => link!);
    expect(pages.length).toBeGreaterThan(10);
    expect(pages).toEqual([...new Set(pages)]);
  });

  test('shows a post with a file once', () => {
    expect(page.match(/^curl .*-F file=.*$/gm)).toHaveLength(1);
  });

  test('says every port that a server listens on by default', () => {
    const { http, metrics, endpoints } = load(MINIMAL).config;
    const table = page.slice(page.indexOf('## Configuration'), page.indexOf('## Operation'));
    for (const { port } of [http, metrics, ...endpoints]) expect(table).toContain(`127.0.0.1:${port}`);
  });
});
