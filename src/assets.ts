import { readFileSync, readdirSync, statSync } from 'node:fs';
import { getAsset, getAssetKeys, isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * The path of a file that ships with the program. Must not be called in the single binary, which contains its files. In
 * the bundle all files are beside the program. In the source tree, the browser client is in `../build/`, and `etc/` and
 * `package.json` are in `../`.
 */
function locateAsset(name: string): string {
  const places = ['./', '../build/', '../'].map((place) => fileURLToPath(new URL(`${place}${name}`, import.meta.url)));
  return places.find((path) => statSync(path, { throwIfNoEntry: false }) !== undefined) ?? places.at(-1)!;
}

/** The text of a file that ships with the program, such as `config/reference.conf`. Throws if there is no such file. */
export function readAsset(name: string): string {
  return isSea() ? getAsset(name, 'utf8') : readFileSync(locateAsset(name), 'utf8');
}

/** The bytes of a file that ships with the program. Throws if there is no such file. */
export function readAssetBytes(name: string): Buffer {
  return isSea() ? Buffer.from(getAsset(name)) : readFileSync(locateAsset(name));
}

/** The sorted names of the files in a folder that ships with the program. */
export function listAssets(folder: string): string[] {
  if (!isSea()) return readdirSync(locateAsset(folder)).sort();
  const folderPrefix = `${folder}/`;
  return getAssetKeys()
    .filter((key) => key.startsWith(folderPrefix))
    .map((key) => key.slice(folderPrefix.length))
    .sort();
}

/**
 * Starts a thread whose code ships with the program. `name` is its path in the source tree without the extension, such
 * as `storage/hooks/settlement-thread`. In the bundle it is a script without imports of other source files
 * (scripts/package/bundle.ts). The single binary starts the thread from the script's text, since it cannot start one
 * from a file inside itself. Throws if the system cannot create a thread. Later errors are events `error` of the
 * thread.
 */
export function startThread(name: string, options: WorkerOptions): Worker {
  if (isSea()) return new Worker(getAsset(`${name}.cjs`, 'utf8'), { ...options, eval: true });
  const bundled = fileURLToPath(new URL(`./${name}.cjs`, import.meta.url));
  const isBundled = statSync(bundled, { throwIfNoEntry: false }) !== undefined;
  if (isBundled) return new Worker(readFileSync(bundled, 'utf8'), { ...options, eval: true });
  return new Worker(new URL(`./${name}.ts`, import.meta.url), options);
}
