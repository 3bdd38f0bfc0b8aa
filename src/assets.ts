import { readFileSync, readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Where a file that ships with the program stands. In the bundle everything is beside it; in the source tree
 * `etc/` and `package.json` are one level up.
 */
function locate(name: string): string {
  const beside = fileURLToPath(new URL(`./${name}`, import.meta.url));
  if (statSync(beside, { throwIfNoEntry: false }) !== undefined) return beside;
  return fileURLToPath(new URL(`../${name}`, import.meta.url));
}

/** The text of a file that ships with the program, such as `config/reference.conf`; throws ENOENT for any other. */
export function readAsset(name: string): string {
  return readFileSync(locate(name), 'utf8');
}

/** Names of the files in a folder that ships with the program, sorted; throws ENOENT for any other. */
export function listAssets(folder: string): string[] {
  return readdirSync(locate(folder)).sort();
}
