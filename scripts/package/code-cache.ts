import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { wrapScript } from './module-loader.ts';
import { BUILD, NODE } from './paths.ts';
import { run, step } from './run.ts';

/**
 * Command lines that are run to compile what commands need. No server answers them; what they do until they say so is
 * what the commands have in common: reading the configuration and asking the server.
 */
const COMMAND_LINES = [['--version'], ['completion', 'bash'], ['status'], ['group', 'list'], ['hook', 'list']];

/**
 * Makes the code cache of a bundle's scripts: what V8 has compiled of them once some commands were run, so that no start
 * of the program compiles it again. Returns a folder with each script, wrapped, and its cache.
 *
 * The cache holds hashes of strings, whose seed is random unless it is set; two builds would differ. A flag that is set
 * makes V8 refuse the cache elsewhere, so code-cache-main.ts takes it back once the seed is in use.
 */
export function makeCodeCache(bundle: string): string {
  step('compiling what commands need');
  const folder = join(BUILD, 'scripts');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(bundle).filter((each) => each.endsWith('.cjs'))) {
    writeFileSync(join(folder, name), wrapScript(readFileSync(join(bundle, name), 'utf8')));
  }
  const main = join(import.meta.dirname, 'code-cache-main.ts');
  // A data directory without a server, whatever runs on this machine, and no variable that changes what is compiled.
  const config = join(BUILD, 'code-cache.conf');
  writeFileSync(config, `data-dir = "${join(BUILD, 'no-data')}"\n`);
  for (const commandLine of COMMAND_LINES) {
    run(NODE, ['--hash-seed=1', main, folder, bundle, ...commandLine, '--config', config], { env: {} });
  }
  return folder;
}
