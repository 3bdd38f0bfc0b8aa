/**
 * Runs a command line of the bundle and writes, beside each script that was loaded, what V8 has compiled of it by the
 * end: `node --hash-seed=1 code-cache-main.ts SCRIPTS BUNDLE ARGUMENT…`. Of several runs the largest cache is kept.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { CODE_CACHE, ModuleLoader } from './module-loader.ts';

// The seed stays as it is; the flags are as in any other process again.
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
  // Without a server most of the command lines fail, which is not what is asked here.
  process.exitCode = 0;
});
loader.load('klatch.cjs');
