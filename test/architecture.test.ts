import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';

const root = resolve(import.meta.dirname, '..');
const src = join(root, 'src');

/**
 * Which layers a layer may import, besides itself. The order is the one of ARCHITECTURE.md: whoever adds a folder
 * to src/ has to give it a place here.
 */
const mayImport: Record<string, readonly string[]> = {
  hocon: [],
  model: [],
  'assets.ts': [],
  'log.ts': [],
  'installation.ts': [],
  'lifecycle.ts': ['log.ts'],
  'port-holder.ts': [],
  'connection-limit.ts': ['log.ts'],
  'listen.ts': ['port-holder.ts', 'connection-limit.ts'],
  'version.ts': ['assets.ts'],
  'errors.ts': ['model'],
  'histogram.ts': [],
  config: ['model', 'hocon', 'assets.ts', 'errors.ts'],
  storage: ['model', 'config', 'errors.ts', 'assets.ts', 'log.ts', 'installation.ts', 'histogram.ts'],
  outbound: ['model', 'config', 'errors.ts', 'log.ts', 'histogram.ts'],
  activation: ['model', 'config'],
  bus: ['model', 'config', 'errors.ts', 'log.ts', 'storage'],
  push: ['model', 'config', 'errors.ts', 'log.ts', 'histogram.ts', 'storage', 'outbound', 'bus'],
  files: ['model', 'config', 'errors.ts', 'log.ts', 'histogram.ts', 'storage', 'outbound'],
  operations: [
    'model',
    'config',
    'errors.ts',
    'log.ts',
    'version.ts',
    'storage',
    'outbound',
    'activation',
    'bus',
    'push',
    'files',
  ],
  delivery: [
    'model',
    'config',
    'errors.ts',
    'log.ts',
    'histogram.ts',
    'storage',
    'outbound',
    'bus',
    'files',
    'operations',
  ],
  live: [
    'model',
    'config',
    'errors.ts',
    'connection-limit.ts',
    'listen.ts',
    'log.ts',
    'version.ts',
    'storage',
    'bus',
    'operations',
  ],
  http: [
    'model',
    'config',
    'errors.ts',
    'log.ts',
    'version.ts',
    'histogram.ts',
    'connection-limit.ts',
    'listen.ts',
    'storage',
    'bus',
    'files',
    'operations',
  ],
  metrics: [
    'model',
    'config',
    'errors.ts',
    'log.ts',
    'histogram.ts',
    'connection-limit.ts',
    'storage',
    'outbound',
    'push',
    'files',
    'operations',
    'delivery',
    'live',
    'http',
  ],
  chat: ['model', 'errors.ts', 'log.ts', 'version.ts'],
  doctor: ['model', 'config', 'port-holder.ts', 'storage', 'outbound', 'push', 'files'],
};
const lower = Object.keys(mayImport);
mayImport['server.ts'] = lower;
mayImport['cli'] = [...lower, 'server.ts'];
mayImport['main.ts'] = ['cli'];

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** The project's own files that a file names in import and export statements, type imports too. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  const specifiers = [...text.matchAll(/(?:^|\n)\s*(?:import|export)\b[^'";]*?from\s*'([^']+)'/g)].map((m) => m[1]!);
  specifiers.push(...[...text.matchAll(/(?:^|\n)\s*import\s+'([^']+)'/g)].map((m) => m[1]!));
  specifiers.push(...[...text.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g)].map((m) => m[1]!));
  return specifiers.filter((s) => s.startsWith('.')).map((s) => resolve(dirname(file), s));
}

const layerOf = (file: string): string => relative(src, file).split('/')[0]!;
const files = sourceFiles(src);
const graph = new Map(files.map((file) => [file, importsOf(file)]));

describe('the structure of the source', () => {
  test('is not empty, so that the rules below have something to hold', () => {
    expect(files.length).toBeGreaterThan(3);
  });

  test('imports go one way through the layers', () => {
    const wrong: string[] = [];
    for (const [file, imports] of graph) {
      const layer = layerOf(file);
      const allowed = mayImport[layer];
      if (allowed === undefined) wrong.push(`${layer} has no place in the order of layers`);
      for (const target of imports) {
        const other = layerOf(target);
        if (!target.startsWith(src)) wrong.push(`${relative(root, file)} imports ${relative(root, target)}`);
        else if (other !== layer && !allowed?.includes(other)) {
          wrong.push(`${relative(root, file)} imports ${relative(root, target)}: ${layer} may not use ${other}`);
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  test('no file imports itself through others', () => {
    const state = new Map<string, 'open' | 'done'>();
    const cycles: string[] = [];
    const visit = (file: string, path: string[]): void => {
      if (state.get(file) === 'done') return;
      if (state.get(file) === 'open') {
        cycles.push([...path.slice(path.indexOf(file)), file].map((f) => relative(root, f)).join(' -> '));
        return;
      }
      state.set(file, 'open');
      for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
      state.set(file, 'done');
    };
    for (const file of files) visit(file, []);
    expect(cycles).toEqual([]);
  });

  test('every relative import names a file that exists', () => {
    const missing = [...graph].flatMap(([file, imports]) =>
      imports.filter((target) => !graph.has(target)).map((t) => `${relative(root, file)} -> ${relative(root, t)}`),
    );
    expect(missing).toEqual([]);
  });

  test('no file is longer than 400 lines', () => {
    const all = [...files, ...sourceFiles(join(root, 'test')), ...sourceFiles(join(root, 'scripts'))];
    const long = all.filter((file) => readFileSync(file, 'utf8').split('\n').length > 401);
    expect(long.map((file) => relative(root, file))).toEqual([]);
  });

  test('no test has a limit of its own: jest catches hangs, and no limit measures the speed of the machine', () => {
    const limit = /^( *)(?:test|beforeAll|beforeEach|afterAll|afterEach)\(.*\n(?:(?!\1\S).*\n)*\1\}, [\w*+ ]+\);$/gm;
    const limited = sourceFiles(join(root, 'test')).flatMap((file) =>
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
