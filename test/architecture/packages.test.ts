import { join, relative } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { FOLDERS, importsOf, modulesOf, packages, root, sourceFiles } from './source-graph.ts';

/** The only file of the project that the tests of a package may import: it has the speed of this machine. */
const TEST_TOOLS = 'test/run/machine-speed.ts';

/** Every import of a file of the project, with the file that imports it. */
const allImports = FOLDERS.flatMap((folder) => sourceFiles(join(root, folder))).flatMap((file) =>
  importsOf(file).map(({ target, names }) => ({ file, target, names })),
);
const show = ({ file, target }: { file: string; target: string }): string =>
  `${relative(root, file)} -> ${relative(root, target)}`;

describe.each([...packages])('the package %s', (name, sources) => {
  const isIn = (folder: string, file: string): boolean => file.startsWith(join(folder, '/'));
  const entry = join(sources, 'index.ts');

  test('imports nothing of the project and nothing of npm', () => {
    const ofProject = allImports.filter(({ file, target }) => isIn(sources, file) && !isIn(sources, target));
    expect(ofProject.map(show)).toEqual([]);
    const modules = sourceFiles(sources).flatMap(modulesOf);
    expect(modules.filter((module) => !module.startsWith('node:'))).toEqual([]);
  });

  test('is imported by its entry alone', () => {
    const past = allImports.filter(
      ({ file, target }) => !isIn(sources, file) && isIn(sources, target) && target !== entry,
    );
    expect(past.map(show)).toEqual([]);
  });

  test('has tests that import the package and no other part of the project', () => {
    const tests = join(root, name, 'test');
    const elsewhere = allImports
      .filter(({ file, target }) => isIn(tests, file) && !isIn(join(root, name), target))
      .filter(({ target }) => relative(root, target) !== TEST_TOOLS);
    expect(elsewhere.map(show)).toEqual([]);
  });

  test('exports what somebody outside imports, and the types that this needs', () => {
    const used = new Set(
      allImports.flatMap(({ file, target, names }) => (target === entry && !isIn(sources, file) ? (names ?? []) : [])),
    );
    const exported = importsOf(entry).flatMap(({ names, isType }) => (isType ? [] : (names ?? [])));
    expect(exported.length).toBeGreaterThan(0);
    expect(exported.filter((each) => !used.has(each))).toEqual([]);
  });
});
