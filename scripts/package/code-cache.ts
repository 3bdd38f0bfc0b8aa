import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { wrapScript } from './module-loader.ts';
import { BUILD, NODE } from './paths.ts';
import { run, step } from './run.ts';

/**
 * Command lines to run, so that V8 compiles the code that commands share: they read the configuration and call the
 * server. No server answers them.
 */
const COMMAND_LINES = [['--version'], ['completion', 'bash'], ['status'], ['group', 'list'], ['hook', 'list']];

/**
 * Makes the code cache of a bundle's scripts: the code that V8 compiled during some commands. So no start of the
 * program compiles that code again. Returns a folder with each script, wrapped, and its cache.
 *
 * The cache contains hashes of strings. Their seed is random by default, so that two builds would differ; therefore
 * `--hash-seed` sets it. V8 refuses a cache that was made with another flag, so code-cache-main.ts resets the flag once
 * the seed is in use.
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
  // The data directory has no server, so that no server of this machine answers. The environment is empty, because
  // variables could change the compiled code.
  const config = join(BUILD, 'code-cache.conf');
  writeFileSync(config, `data-dir = "${join(BUILD, 'no-data')}"\n`);
  for (const commandLine of COMMAND_LINES) {
    run(NODE, ['--hash-seed=1', main, folder, bundle, ...commandLine, '--config', config], { env: {} });
  }
  return folder;
}
