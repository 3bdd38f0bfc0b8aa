import { join, relative } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { build, stop } from 'esbuild';
import { client, importGraph, modulesOf, root, sourceFiles, src, web } from './source-graph.ts';

/** By folder of the client: the packages that it may import; `node:` means all modules of Node. */
const packages: Readonly<Record<string, readonly string[]>> = {
  core: [],
  node: ['node:', 'ws'],
  terminal: ['node:', 'commander'],
};

/** Finds imports of files that the rule forbids. */
function imports(folder: string, rule: (file: string, target: string) => boolean): string[] {
  return [...importGraph(folder)].flatMap(([file, targets]) =>
    targets
      .filter((target) => !rule(relative(root, file), relative(root, target)))
      .map((target) => `${relative(root, file)} -> ${relative(root, target)}`),
  );
}

describe('the client', () => {
  afterAll(() => stop());

  test('imports files of its own only', () => {
    expect(imports(client, (_, target) => target.startsWith('client/'))).toEqual([]);
  });

  test('is imported by the command line, and by nothing else of the server', () => {
    expect(imports(src, (file, target) => file.startsWith('src/cli/') || !target.startsWith('client/'))).toEqual([]);
  });

  test('is imported of the browser client as its core alone', () => {
    expect(imports(web, (_, target) => target.startsWith('web/') || target.startsWith('client/core/'))).toEqual([]);
  });

  test('is in the browser beside Preact, its signals, idb, lean-qr and tus-js-client, and nothing else of npm', () => {
    const modules = new Set(sourceFiles(web).flatMap(modulesOf));
    expect([...modules].sort()).toEqual([
      '@preact/signals',
      'idb',
      'lean-qr/nano',
      'preact',
      'preact/hooks',
      'tus-js-client',
    ]);
  });

  test.each(Object.entries(packages))('imports in client/%s the packages %j only', (folder, allowed) => {
    const others = sourceFiles(join(client, folder)).flatMap((file) =>
      modulesOf(file)
        .filter((name) => !allowed.includes(name.replace(/^node:.*/, 'node:')))
        .map((name) => `${relative(root, file)}: ${name}`),
    );
    expect(others).toEqual([]);
  });

  test('has a core that browsers can load', async () => {
    const { errors, warnings, outputFiles } = await build({
      entryPoints: sourceFiles(join(client, 'core')),
      outdir: 'unwritten',
      write: false,
      bundle: true,
      format: 'esm',
      platform: 'browser',
      logLevel: 'silent',
    });
    expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
    expect(outputFiles.length).toBe(sourceFiles(join(client, 'core')).length);
  });
});
