import { readFileSync, readdirSync, statSync } from 'node:fs';
import { getAsset, getAssetKeys, isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * Where a file that ships with the program is, unless it is inside the single binary. In the bundle everything is beside it; in the source tree
 * the browser client is below `build/`, and `etc/` and `package.json` are one level up.
 */
function locateAsset(name: string): string {
  const places = ['./', '../build/', '../'].map((place) => fileURLToPath(new URL(`${place}${name}`, import.meta.url)));
  return places.find((path) => statSync(path, { throwIfNoEntry: false }) !== undefined) ?? places.at(-1)!;
}

/** The text of a file that ships with the program, such as `config/reference.conf`; throws for any other. */
export function readAsset(name: string): string {
  return isSea() ? getAsset(name, 'utf8') : readFileSync(locateAsset(name), 'utf8');
}

/** The bytes of such a file. */
export function readAssetBytes(name: string): Buffer {
  return isSea() ? Buffer.from(getAsset(name)) : readFileSync(locateAsset(name));
}

/** Names of the files in a folder that ships with the program, sorted. */
export function listAssets(folder: string): string[] {
  if (!isSea()) return readdirSync(locateAsset(folder)).sort();
  const start = `${folder}/`;
  return getAssetKeys()
    .filter((key) => key.startsWith(start))
    .map((key) => key.slice(start.length))
    .sort();
}

/**
 * Starts a thread whose code ships with the program, named by its place in the source tree without the ending, such as
 * `storage/hooks/settlement-thread`. The bundle has it as a script without imports of its own files
 * (scripts/package/bundle.ts), which runs out of its text: a thread cannot be started from a file inside the binary.
 * Throws when the system gives no thread; what goes wrong later is an `error` of the thread.
 */
export function startThread(name: string, options: WorkerOptions): Worker {
  if (isSea()) return new Worker(getAsset(`${name}.cjs`, 'utf8'), { ...options, eval: true });
  const bundled = fileURLToPath(new URL(`./${name}.cjs`, import.meta.url));
  const isBundled = statSync(bundled, { throwIfNoEntry: false }) !== undefined;
  if (isBundled) return new Worker(readFileSync(bundled, 'utf8'), { ...options, eval: true });
  return new Worker(new URL(`./${name}.ts`, import.meta.url), options);
}
