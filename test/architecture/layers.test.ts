import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { client, importGraph, packages, root, sourceFiles, src, web } from './source-graph.ts';

/**
 * The exact imports of each layer from other layers, in an order in which no layer imports a later one. A layer is a
 * folder of src/, a file in src/, the client, or a package. ARCHITECTURE.md says what belongs into which.
 */
const layers: Readonly<Record<string, readonly string[]>> = {
  'packages/hocon': [],
  client: [],
  web: ['client'],
  'assets.ts': [],
  model: [],
  callers: ['model'],
  receivers: ['model', 'callers'],
  config: ['packages/hocon', 'assets.ts', 'model'],
  activation: ['model', 'config'],
  'log.ts': [],
  'data-dir': ['config', 'log.ts'],
  'histogram.ts': [],
  'installation.ts': [],
  storage: ['assets.ts', 'model', 'config', 'log.ts', 'data-dir', 'histogram.ts', 'installation.ts'],
  bus: ['model', 'log.ts', 'storage'],
  'errors.ts': [],
  files: ['model', 'config', 'log.ts', 'storage', 'errors.ts'],
  outbound: ['model', 'config', 'histogram.ts'],
  'port-holder.ts': [],
  push: ['model', 'config', 'log.ts', 'histogram.ts', 'storage', 'bus', 'outbound'],
  doctor: ['model', 'config', 'data-dir', 'storage', 'files', 'outbound', 'port-holder.ts', 'push'],
  'connection-limit.ts': ['log.ts'],
  'listen.ts': ['port-holder.ts', 'connection-limit.ts'],
  operations: [
    'model',
    'callers',
    'receivers',
    'config',
    'activation',
    'log.ts',
    'storage',
    'bus',
    'errors.ts',
    'files',
    'outbound',
    'push',
  ],
  delivery: ['model', 'receivers', 'config', 'log.ts', 'histogram.ts', 'storage', 'bus', 'files', 'outbound'],
  http: [
    'assets.ts',
    'model',
    'callers',
    'config',
    'log.ts',
    'histogram.ts',
    'storage',
    'errors.ts',
    'files',
    'connection-limit.ts',
    'listen.ts',
    'operations',
  ],
  'lifecycle.ts': ['log.ts'],
  live: ['model', 'config', 'log.ts', 'storage', 'bus', 'errors.ts', 'connection-limit.ts', 'listen.ts', 'operations'],
  metrics: [
    'model',
    'config',
    'log.ts',
    'histogram.ts',
    'storage',
    'errors.ts',
    'files',
    'outbound',
    'push',
    'connection-limit.ts',
    'operations',
    'delivery',
    'http',
    'live',
  ],
  'version.ts': ['assets.ts'],
  workers: ['model', 'log.ts', 'data-dir', 'storage', 'bus', 'operations'],
  'server.ts': [
    'model',
    'config',
    'activation',
    'log.ts',
    'data-dir',
    'storage',
    'bus',
    'files',
    'outbound',
    'push',
    'connection-limit.ts',
    'operations',
    'delivery',
    'http',
    'lifecycle.ts',
    'live',
    'metrics',
    'version.ts',
    'workers',
  ],
  cli: [
    'packages/hocon',
    'assets.ts',
    'model',
    'config',
    'log.ts',
    'data-dir',
    'installation.ts',
    'storage',
    'errors.ts',
    'files',
    'client',
    'doctor',
    'listen.ts',
    'operations',
    'version.ts',
    'server.ts',
  ],
  'main.ts': ['cli'],
};

const layerOf = (file: string): string => {
  const [top, name] = relative(root, file).split('/') as [string, string];
  if (top === 'client' || top === 'web') return top;
  return top === 'src' ? name : `${top}/${name}`;
};
const folders = [src, client, web, ...packages.values()];
const files = folders.flatMap(sourceFiles);
const graph = new Map(folders.flatMap((folder) => [...importGraph(folder)]));

describe('the structure of the source', () => {
  test('is not empty, so that the rules below have something to hold', () => {
    expect(files.length).toBeGreaterThan(3);
  });

  test('layers import what is listed, and nothing else', () => {
    const found = new Map(Object.keys(layers).map((layer) => [layer, new Set<string>()]));
    for (const [file, imports] of graph) {
      const layer = layerOf(file);
      if (!found.has(layer)) found.set(layer, new Set());
      for (const target of imports) if (layerOf(target) !== layer) found.get(layer)!.add(layerOf(target));
    }
    const actual = Object.fromEntries([...found].map(([layer, others]) => [layer, [...others].sort()]));
    expect(actual).toEqual(
      Object.fromEntries(Object.entries(layers).map(([layer, others]) => [layer, [...others].sort()])),
    );
  });

  test('imports go one way through the layers', () => {
    const order = Object.keys(layers);
    const upward = order.flatMap((layer) =>
      layers[layer]!.filter((other) => order.indexOf(other) > order.indexOf(layer)).map(
        (other) => `${layer} -> ${other}`,
      ),
    );
    expect(upward).toEqual([]);
  });

  test('every relative import names a file that exists', () => {
    const missing = [...graph].flatMap(([file, imports]) =>
      imports.filter((target) => !graph.has(target)).map((t) => `${relative(root, file)} -> ${relative(root, t)}`),
    );
    expect(missing).toEqual([]);
  });

  test('no file is longer than 400 lines', () => {
    const all = ['src', 'client', 'web', 'packages', 'test', 'scripts'].flatMap((folder) =>
      sourceFiles(join(root, folder)),
    );
    const long = all.filter((file) => readFileSync(file, 'utf8').split('\n').length > 401);
    expect(long.map((file) => relative(root, file))).toEqual([]);
  });

  test('no test has a limit of its own: jest catches hangs, and no limit measures the speed of the machine', () => {
    const limit = /^( *)(?:test|beforeAll|beforeEach|afterAll|afterEach)\(.*\n(?:(?!\1\S).*\n)*\1\}, [\w*+ ]+\);$/gm;
    const tests = ['test', 'packages'].flatMap((folder) => sourceFiles(join(root, folder)));
    const limited = tests.flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(limit)].map(
        ([text]) => `${relative(root, file)}: ${text.split('\n')[0]}`,
      ),
    );
    expect(limited).toEqual([]);
  });

  test('caches are bounded by BoundedCache: lru-cache with its option max allocates all entries at once', () => {
    const allocating = files.filter((file) => /new LRUCache[^;]*\bmax:/.test(readFileSync(file, 'utf8')));
    expect(allocating.map((file) => relative(root, file))).toEqual([]);
  });

  test('SQL stands in storage only', () => {
    const statement = /\b(?:sql|tx)(?:<[^`]*>)?`/;
    const outside = files.filter((f) => layerOf(f) !== 'storage' && statement.test(readFileSync(f, 'utf8')));
    expect(outside.map((file) => relative(root, file))).toEqual([]);
  });

  test('only the composition root names the parts that can be exchanged', () => {
    const drivers = [join(src, 'storage/embedded/embedded.ts'), join(src, 'bus/postgres-bus.ts')];
    const users = [...graph]
      .filter(([file, imports]) => imports.some((i) => drivers.includes(i)) && layerOf(file) !== 'server.ts')
      .filter(([file, imports]) => imports.some((i) => drivers.includes(i) && layerOf(i) !== layerOf(file)));
    expect(users.map(([file]) => relative(root, file))).toEqual([]);
  });
});
