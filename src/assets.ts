import { readFileSync, readdirSync, statSync } from 'node:fs';
import { getAsset, getAssetKeys, isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * The path of a file that ships with the program. It is not for the single binary, which contains its files. In the
 * bundle all files are beside the program. In the source tree the browser client is below `build/`, and `etc/` and
 * `package.json` are one level up.
 */
function locateAsset(name: string): string {
  const places = ['./', '../build/', '../'].map((place) => fileURLToPath(new URL(`${place}${name}`, import.meta.url)));
  return places.find((path) => statSync(path, { throwIfNoEntry: false }) !== undefined) ?? places.at(-1)!;
}

/** The text of a file that ships with the program, such as `config/reference.conf`; throws for any other. */
export function readAsset(name: string): string {
  return isSea() ? getAsset(name, 'utf8') : readFileSync(locateAsset(name), 'utf8');
}

/** The bytes of a file that ships with the program; throws for any other. */
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
 * Starts a thread whose code ships with the program. `name` is its path in the source tree without the extension, such
 * as `storage/hooks/settlement-thread`. The bundle contains it as a script without imports of other source files
 * (scripts/package/bundle.ts), and runs it from its text: a thread cannot be started from a file inside the binary.
 * Throws if the system cannot create a thread; later errors are `error` events of the thread.
 */
export function startThread(name: string, options: WorkerOptions): Worker {
  if (isSea()) return new Worker(getAsset(`${name}.cjs`, 'utf8'), { ...options, eval: true });
  const bundled = fileURLToPath(new URL(`./${name}.cjs`, import.meta.url));
  const isBundled = statSync(bundled, { throwIfNoEntry: false }) !== undefined;
  if (isBundled) return new Worker(readFileSync(bundled, 'utf8'), { ...options, eval: true });
  return new Worker(new URL(`./${name}.ts`, import.meta.url), options);
}
