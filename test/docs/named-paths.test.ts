import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';

const root = join(import.meta.dirname, '../..');
/**
 * Matches a path of the repository in backquotes. Paths with a placeholder or a pattern do not match, since they name
 * no file.
 */
const PATH = /`((?:bench|client|debian|docs|etc|faults|packages|scripts|src|systemd|test|web)\/[\w./-]*)`/g;

test('DEVELOPING.md names the number of the next migration', () => {
  const numbers = readdirSync(join(root, 'src/storage/migrations')).map((name) => Number(name.slice(0, 3)));
  const next = String(Math.max(...numbers) + 1).padStart(3, '0');
  expect(readFileSync(join(root, 'DEVELOPING.md'), 'utf8')).toContain(`src/storage/migrations/${next}-<name>.sql`);
});

describe.each(['ARCHITECTURE.md', 'DEVELOPING.md', 'GLOSSARY.md'])('%s', (name) => {
  test('names files and folders that exist', () => {
    const paths = [...readFileSync(join(root, name), 'utf8').matchAll(PATH)].map(([, path]) => path!);
    expect(paths.length).toBeGreaterThan(10);
    expect([...new Set(paths)].filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});
