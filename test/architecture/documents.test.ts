import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { root } from './source-graph.ts';

const DOCUMENTS = ['README.md', 'ARCHITECTURE.md', 'DEVELOPING.md', 'GLOSSARY.md'] as const;
/** Folders of the sources; what a build makes (`build/`, `dist/`) need not be there. */
const PATH = /`((?:src|client|packages|test|scripts|bench|faults|docs|etc|debian|systemd)\/[\w./-]*[\w-])\/?`/g;

/** Paths that a document names as code: without a placeholder or a wildcard. */
function pathsIn(text: string): readonly string[] {
  return [...text.matchAll(PATH)].map(([, path]) => path!);
}

test('paths are found in code spans', () => {
  expect(pathsIn('see `src/log.ts`, `src/bus/` and `src/<noun>.ts`, not src/main.ts')).toEqual([
    'src/log.ts',
    'src/bus',
  ]);
});

test.each(DOCUMENTS)('every file that %s names is there', (document) => {
  const paths = pathsIn(readFileSync(join(root, document), 'utf8'));
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
