import { closeSync, copyFileSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Bundle } from './bundle.ts';
import { BUILD, NODE, ROOT } from './paths.ts';
import { run, step } from './run.ts';
import { LOADER } from './runtime.ts';

/** Where the package installs the private C library: a program names its loader by an absolute path. */
const INSTALLED_RUNTIME = '/usr/lib/klatch/rt';

/**
 * Makes the single binary, build/klatch: the pinned Node with the bundle inside. It starts by the loader in
 * /usr/lib/klatch/rt; elsewhere that loader is called by its path (the release zip's bin/klatch). Its libraries come from
 * `rt` beside it.
 */
export function makeBinary({ folder }: Bundle): string {
  const binary = join(BUILD, 'klatch');
  rmSync(binary, { force: true });
  const config = join(folder, 'pkg.config.json');
  writeFileSync(config, JSON.stringify({ sea: true, assets: ['config/**', 'storage/**', 'etc/**', 'package.json'] }));
  const version = run(NODE, ['--version']).trim().slice(1);
  const home = prepareNode(version);
  step('packing the bundle and Node into one binary');
  const pkg = join(ROOT, 'node_modules/@yao-pkg/pkg/lib-es5/bin.js');
  const target = ['-t', `node${version}-linux-x64`, '-o', binary];
  // Its own folder of temporary files, since the binary remembers their names.
  const env = { PATH: process.env['PATH'], HOME: home, TMPDIR: '/tmp' };
  run(process.execPath, [pkg, join(folder, 'klatch.cjs'), '-c', config, ...target], { cwd: folder, env });
  makeReproducible(binary);
  // After pkg, which would corrupt it. RPATH, not RUNPATH: the libraries that libc loads by itself have to come from there too.
  const interpreter = ['--set-interpreter', join(INSTALLED_RUNTIME, LOADER)];
  run('patchelf', [...interpreter, '--force-rpath', '--set-rpath', '$ORIGIN/rt', binary]);
  return binary;
}

/** A home folder in which pkg finds the Node that npm brought, so that it downloads none. */
function prepareNode(version: string): string {
  step(`preparing Node ${version}`);
  const home = join(BUILD, 'pkg-home');
  const cache = join(home, '.pkg-cache/sea');
  const name = `node-v${version}-linux-x64`;
  const node = join(cache, name, 'bin/node');
  rmSync(home, { recursive: true, force: true });
  mkdirSync(dirname(node), { recursive: true });
  copyFileSync(NODE, node);
  run('strip', [node]);
  for (const marker of [`${name}.tar.gz`, `${name}.tar.gz.ok`, `${name}/bin/node.ok`]) {
    closeSync(openSync(join(cache, marker), 'w'));
  }
  return home;
}

/** The binary holds the name of pkg's temporary folder, which is another each time: it gets one of the same length. */
function makeReproducible(binary: string): void {
  const { mode } = statSync(binary);
  const bytes = readFileSync(binary);
  const mark = Buffer.from('/tmp/pkg-sea-');
  for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at + 1)) {
    bytes.write('klatch', at + mark.length, 'latin1');
  }
  writeFileSync(binary, bytes, { mode });
}
