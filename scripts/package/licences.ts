import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE, readJson, ROOT } from './paths.ts';

/** One npm package whose code the program contains. */
interface Library {
  readonly name: string;
  readonly version: string;
  /** The licence, as an SPDX expression. */
  readonly license: string;
  readonly text: string;
}

const RULE = '-'.repeat(79);

/** The npm package that a source file belongs to; null for a file of this project. */
export function libraryOf(file: string): string | null {
  return /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? null;
}

/** One line for each library: name, version, licence. `names` are npm packages. */
export function listLibraries(names: readonly string[]): string[] {
  return names.map(readLibrary).map(({ name, version, license }) => `${name} ${version} (${license})`);
}

/** The complete notices of Node and of each library, for the recipients of the program. */
export function noticesOf(names: readonly string[]): string {
  const node = readFileSync(join(NODE, '../../LICENSE'), 'utf8');
  const parts = names
    .map(readLibrary)
    .map(({ name, version, license, text }) => [`${name} ${version}: ${license}`, text]);
  return [['Node.js', node], ...parts]
    .map(([title, text]) => `${RULE}\n${title}\n${RULE}\n\n${text!.trim()}\n`)
    .join('\n');
}

/** Throws where a package names no licence: it could not be distributed. */
function readLibrary(name: string): Library {
  const folder = join(ROOT, 'node_modules', name);
  const { version, license } = readJson(join(folder, 'package.json')) as { version: string; license?: unknown };
  if (typeof license !== 'string') throw new Error(`node_modules/${name}: its package.json names no licence`);
  const file = readdirSync(folder).find((each) => /^(un)?licen[cs]e|^copying/i.test(each));
  const text =
    file === undefined ? 'Its package holds no text of the licence.' : readFileSync(join(folder, file), 'utf8');
  return { name, version, license, text };
}
