import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { BUILD, buildVersion, readJson, ROOT } from './paths.ts';

/** A bundle and what is in it. */
export interface Bundle {
  /** Holds klatch.cjs and the files that it reads. */
  readonly folder: string;
  /** Names of the npm packages whose code is in it, sorted. */
  readonly libraries: readonly string[];
}

/**
 * Bundles the server into one script, `build/bundle/klatch.cjs`, with the files it reads beside it. In CommonJS: that is
 * what a single binary starts, and what a thread runs out of a text. What was in the folder before is removed.
 */
export async function bundle(folder = join(BUILD, 'bundle')): Promise<Bundle> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const inputs = [
    ...(await bundleScript('src/main.ts', join(folder, 'klatch.cjs'))),
    ...(await bundleScript('src/storage/settlement-thread.ts', join(folder, 'storage/settlement-thread.cjs'))),
  ];
  for (const [from, to] of [
    ['src/config/reference.conf', 'config/reference.conf'],
    ['src/storage/migrations', 'storage/migrations'],
    ['etc/klatch', 'etc/klatch'],
  ] as const) {
    cpSync(join(ROOT, from), join(folder, to), { recursive: true });
  }
  const { name, license } = readJson(join(ROOT, 'package.json')) as { name: string; license: string };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ name, version: buildVersion(), license })}\n`);
  return { folder, libraries: [...new Set(inputs.map(libraryOf).filter((each) => each !== null))].sort() };
}

async function bundleScript(entry: string, outfile: string): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    // CommonJS has no import.meta.
    define: { 'import.meta.url': 'moduleUrl', 'import.meta.dirname': '__dirname' },
    banner: { js: "const moduleUrl = require('node:url').pathToFileURL(__filename).href;" },
    metafile: true,
    logLevel: 'warning',
  });
  return Object.keys(metafile.inputs);
}

/** The npm package that a source file belongs to; null for one of ours. */
function libraryOf(file: string): string | null {
  return /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? null;
}
