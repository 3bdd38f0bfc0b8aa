/** The main script of the single binary: loads the program out of the assets of the binary. */
import { getAssetKeys, getRawAsset } from 'node:sea';
import { CODE_CACHE, ModuleLoader } from './module-loader.ts';

/** The main script's own: of Node's ways to a module, the one that does not make an ES module of it as well. */
declare const require: (name: string) => unknown;

const keys = new Set(getAssetKeys());

const loader = new ModuleLoader({
  find: (name) => {
    const codeCache = `${name}${CODE_CACHE}`;
    return {
      // ASCII (bundle.ts): a byte is a character.
      text: Buffer.from(getRawAsset(name)).toString('latin1'),
      codeCache: keys.has(codeCache) ? Buffer.from(getRawAsset(codeCache)) : undefined,
    };
  },
  builtin: (name) => require(name),
});
loader.load('klatch.cjs');
