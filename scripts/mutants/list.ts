import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Mutant } from './mutant.ts';

/** A mutant and the file of this folder that lists it. */
export interface ListedMutant extends Mutant {
  readonly area: string;
}

/** Files of this folder that list no mutants. */
const TOOLS = ['green-runs.ts', 'jest-run.ts', 'list.ts', 'mutant.ts', 'run.ts', 'tree.ts'];

/**
 * All mutants: the exports `…_MUTANTS` of this folder's files. It reads the folder, so that a new area needs no entry
 * anywhere. Throws when an area lists none, and when two mutants share a name.
 */
export async function listMutants(): Promise<readonly ListedMutant[]> {
  const mutants: ListedMutant[] = [];
  const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.ts') && !TOOLS.includes(file));
  for (const file of files.sort()) {
    const exported = (await import(pathToFileURL(join(import.meta.dirname, file)).href)) as Record<string, unknown>;
    const lists = Object.entries(exported).filter(([name]) => name.endsWith('_MUTANTS'));
    if (lists.length === 0) throw new Error(`scripts/mutants/${file} exports no list whose name ends in _MUTANTS`);
    const area = file.slice(0, -'.ts'.length);
    for (const [, list] of lists) mutants.push(...(list as readonly Mutant[]).map((each) => ({ ...each, area })));
  }
  const names = mutants.map(({ name }) => name);
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  if (twice.length > 0) throw new Error(`several mutants have the name ${twice.join(', ')}; a name must be unique`);
  return mutants;
}
