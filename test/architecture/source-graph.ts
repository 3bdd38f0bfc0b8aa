import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '../..');
export const src = join(root, 'src');
export const client = join(root, 'client');
export const web = join(root, 'web');
/** The folder of the sources of each package, by its path: `packages/hocon`. */
export const packages: ReadonlyMap<string, string> = new Map(
  readdirSync(join(root, 'packages')).map((name) => [`packages/${name}`, join(root, 'packages', name, 'src')]),
);
/** The folders of the project that contain TypeScript. */
export const FOLDERS = ['src', 'client', 'web', 'packages', 'test', 'scripts', 'bench', 'faults'] as const;

/** Lists all files of TypeScript below a folder: absolute paths, sorted. */
export function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** A file that another one imports, and the imported names; null: all of them. */
export interface Import {
  readonly target: string;
  readonly names: readonly string[] | null;
  /** Whether the statement imports only types. */
  readonly isType: boolean;
}

const STATIC = /(?:^|\n)\s*(?:import|export)\s+(type\s+)?([^'";]*?)\s*from\s*'(\.[^']+)'/g;
const BARE = /(?:^|\n)\s*import\s+'(\.[^']+)'/g;
const DYNAMIC = /\bimport\(\s*'(\.[^']+)'\s*\)\)?(?:\.(\w+))?/g;
const MODULE = /(?:^|\n)\s*(?:import|export)\s+(?:[^'";]*?\sfrom\s*)?'([^.'][^']*)'|\bimport\(\s*'([^.'][^']*)'/g;

/** The project's own files that a file imports or exports from, type imports included. */
export function importsOf(file: string): Import[] {
  const text = readFileSync(file, 'utf8');
  const at = (specifier: string): string => resolve(dirname(file), specifier);
  return [
    ...[...text.matchAll(STATIC)].map(([, type, clause, specifier]) => {
      return { target: at(specifier!), names: namesIn(clause!), isType: type !== undefined };
    }),
    ...[...text.matchAll(BARE)].map(([, specifier]) => ({ target: at(specifier!), names: [], isType: false })),
    ...[...text.matchAll(DYNAMIC)].map(([, specifier, name]) => {
      return { target: at(specifier!), names: name === undefined ? null : [name], isType: false };
    }),
  ];
}

/**
 * The names in the clause of an import: `{ a, type B, c as d }` has a, B and c. Null: `* as all` imports everything.
 */
function namesIn(clause: string): string[] | null {
  const braces = /\{([^}]*)\}/.exec(clause);
  if (braces === null) return null;
  const parts = braces[1]!.split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '').map((part) => part.replace(/^type\s+/, '').split(/\s+as\s+/)[0]!);
}

/** The specifiers of a file's other imports: modules of Node and of npm. */
export function modulesOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(MODULE)].map(([, named, loaded]) => (named ?? loaded)!);
}

/** The imports of each file of a folder from the project's own files. */
export function importGraph(folder: string): Map<string, readonly string[]> {
  return new Map(sourceFiles(folder).map((file) => [file, importsOf(file).map(({ target }) => target)]));
}

/** Finds cycles of imports, with paths relative to the root of the project. */
export function cyclesIn(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const state = new Map<string, 'open' | 'done'>();
  const cycles: string[] = [];
  const visit = (file: string, path: string[]): void => {
    if (state.get(file) === 'done') return;
    if (state.get(file) === 'open') {
      const cycle = [...path.slice(path.indexOf(file)), file];
      cycles.push(cycle.map((each) => relative(root, each)).join(' -> '));
      return;
    }
    state.set(file, 'open');
    for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    state.set(file, 'done');
  };
  for (const file of graph.keys()) visit(file, []);
  return cycles;
}
