/**
 * Runs a command line of the bundle. At the end it writes V8's compiled code beside each loaded script: `node
 * --hash-seed=1 code-cache-main.ts SCRIPTS BUNDLE ARGUMENT…`. Of several runs it keeps the largest cache.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { CODE_CACHE, ModuleLoader } from './module-loader.ts';

// Resets the flag, since V8 refuses a cache that was made with another flag. V8 keeps the seed.
setFlagsFromString('--hash-seed=0');

const [scripts, bundle, ...args] = process.argv.slice(2) as [string, string, ...string[]];
const loader = new ModuleLoader({
  find: (name) => ({ text: readFileSync(join(scripts, name), 'latin1'), codeCache: undefined }),
  builtin: (name) => process.getBuiltinModule(name),
  dirname: bundle,
});

process.argv.splice(1, Number.POSITIVE_INFINITY, 'klatch', ...args);
process.on('exit', () => {
  for (const [name, script] of loader.scripts) {
    const file = join(scripts, `${name}${CODE_CACHE}`);
    const cache = script.createCachedData();
    if (!existsSync(file) || statSync(file).size < cache.length) writeFileSync(file, cache);
  }
  // Without a server most of the command lines fail, which does not matter here.
  process.exitCode = 0;
});
loader.load('klatch.cjs');
