/** The main script of the single binary: loads the program from the assets of the binary. */
import { getAssetKeys, getRawAsset } from 'node:sea';
import { CODE_CACHE, ModuleLoader } from './module-loader.ts';

/**
 * The main script's own `require`. Of Node's ways to load a module, only this one does not turn the script into an ES
 * module.
 */
declare const require: (name: string) => unknown;

const keys = new Set(getAssetKeys());

const loader = new ModuleLoader({
  find: (name) => {
    const codeCache = `${name}${CODE_CACHE}`;
    return {
      // The scripts are ASCII (bundle.ts), so each byte is a character.
      text: Buffer.from(getRawAsset(name)).toString('latin1'),
      codeCache: keys.has(codeCache) ? Buffer.from(getRawAsset(codeCache)) : undefined,
    };
  },
  builtin: (name) => require(name),
});
loader.load('klatch.cjs');
