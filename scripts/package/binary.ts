import { copyFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { Bundle } from './bundle.ts';
import { makeCodeCache } from './code-cache.ts';
import type { PackConfig } from './pack.ts';
import { BUILD, NODE } from './paths.ts';
import { run, step } from './run.ts';
import { LOADER } from './runtime.ts';

/** The folder of the package's private C library: a program names its loader by an absolute path. */
const INSTALLED_RUNTIME = '/usr/lib/klatch/rt';

/**
 * The scripts and files of the bundle that the binary contains as assets; `klatch.cjs` is replaced by its wrapped form.
 */
function assetsOf(folder: string, scripts: string): Record<string, string> {
  const files = (of: string): Record<string, string> =>
    Object.fromEntries(
      readdirSync(of, { recursive: true, encoding: 'utf8' })
        .filter((name) => statSync(join(of, name)).isFile())
        .sort()
        .map((name) => [name, join(of, name)]),
    );
  return { ...files(folder), ...files(scripts) };
}

/**
 * Makes the single binary, build/klatch: the pinned Node with the bundle inside. Its ELF interpreter is the loader in
 * /usr/lib/klatch/rt. Elsewhere, as in the release zip, bin/klatch starts the loader in `rt` by its path. The binary
 * loads its libraries from `rt` beside it.
 */
export async function makeBinary({ folder }: Bundle): Promise<string> {
  const binary = join(BUILD, 'klatch');
  rmSync(binary, { force: true });
  await pack(binary, await bundleMain(), assetsOf(folder, makeCodeCache(folder)));
  // patchelf runs after pkg, which would corrupt a patched binary. It sets RPATH and not RUNPATH, because libraries
  // that libc itself loads must come from there too.
  const interpreter = ['--set-interpreter', join(INSTALLED_RUNTIME, LOADER)];
  run('patchelf', [...interpreter, '--force-rpath', '--set-rpath', '$ORIGIN/rt', binary]);
  return binary;
}

/** Makes a program of a script and its assets. The name of the script, `main`, is relative to build/. */
export async function pack(program: string, main: string, assets: Readonly<Record<string, string>>): Promise<void> {
  const node = join(BUILD, 'node');
  copyFileSync(NODE, node);
  run('strip', [node]);
  step('packing the scripts and Node into one binary');
  const config: PackConfig = { program, node, main, assets };
  // pkg works in a new folder below $TMPDIR. The binary contains the path of the script relative to that folder.
  const env = { PATH: process.env['PATH'], TMPDIR: BUILD };
  run(process.execPath, [join(import.meta.dirname, 'pack.ts')], { input: JSON.stringify(config), stdio: 'pipe', env });
}

/** The main script of the binary, which loads the others from the assets. */
async function bundleMain(): Promise<string> {
  const name = 'binary-main.cjs';
  const entry = join(import.meta.dirname, 'binary-main.ts');
  await build({ entryPoints: [entry], outfile: join(BUILD, name), bundle: true, platform: 'node', format: 'cjs' });
  return name;
}
