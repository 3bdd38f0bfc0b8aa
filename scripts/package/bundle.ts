import { isAscii } from 'node:buffer';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build, transform, type BuildOptions, type TransformOptions } from 'esbuild';
import { libraryOf } from './licences.ts';
import { BUILD, buildVersion, readJson, ROOT } from './paths.ts';
import { buildWeb } from './web.ts';

/** A bundle and its contents. */
export interface Bundle {
  /** Contains klatch.cjs, the scripts that it loads, and the files that it reads. */
  readonly folder: string;
  /** The names of the npm packages whose code the bundle contains, sorted. */
  readonly libraries: readonly string[];
}

/** The scripts that run as threads: paths in src without their ending, as `startThread` names them. */
const THREADS = ['storage/hooks/settlement-thread', 'http/large-posts/post-thread'] as const;
const COMMON = { platform: 'node', target: 'node24' } as const;
/** Replaces `import.meta`, which CommonJS does not have. */
const DEFINE = { 'import.meta.url': 'moduleUrl', 'import.meta.dirname': '__dirname' };
const MODULE_URL = "const moduleUrl = require('node:url').pathToFileURL(__filename).href;";

/**
 * Bundles the server into `build/bundle`: klatch.cjs, the scripts that it loads on demand, and the files that it reads
 * beside them. The format is CommonJS: a single binary starts it, and a thread can run it from a text. It removes
 * earlier contents of the folder.
 */
export async function bundle(folder = join(BUILD, 'bundle')): Promise<Bundle> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const inputs = await bundleProgram(folder);
  for (const name of THREADS) inputs.push(...(await bundleThread(folder, name)));
  const webLibraries = await buildWeb(join(folder, 'web'));
  for (const [from, to] of [
    ['src/config/reference.conf', 'config/reference.conf'],
    ['src/storage/migrations', 'storage/migrations'],
    ['etc/klatch', 'etc/klatch'],
  ] as const) {
    cpSync(join(ROOT, from), join(folder, to), { recursive: true });
  }
  const { name, license } = readJson(join(ROOT, 'package.json')) as { name: string; license: string };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ name, version: buildVersion(), license })}\n`);
  const libraries = inputs.map(libraryOf).filter((each) => each !== null);
  return { folder, libraries: [...new Set([...libraries, ...webLibraries])].sort() };
}

/**
 * Splits the program at its dynamic imports, so that a command evaluates only the code that it needs. esbuild splits ES
 * modules only; each result is then converted into CommonJS.
 */
async function bundleProgram(folder: string): Promise<string[]> {
  const { metafile, outputFiles } = await build({
    ...COMMON,
    absWorkingDir: ROOT,
    entryPoints: { klatch: 'src/main.ts' },
    outdir: folder,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    define: DEFINE,
    metafile: true,
    write: false,
    logLevel: 'warning',
  } satisfies BuildOptions);
  for (const { path, text } of outputFiles) {
    const { code } = await transform(text, {
      ...COMMON,
      format: 'cjs',
      // The loader of the single binary supports require() only (module-loader.ts).
      supported: { 'dynamic-import': false },
      banner: text.includes('moduleUrl') ? MODULE_URL : '',
    } satisfies TransformOptions);
    writeFileSync(join(folder, basename(path)), await asciiOf(code));
  }
  return Object.keys(metafile.inputs);
}

/**
 * Converts a script into ASCII, for which V8 takes half of the memory. esbuild escapes strings and expressions, but not
 * some comments; this function replaces those comments' other characters with question marks. Throws if code contains
 * other characters.
 */
async function asciiOf(code: string): Promise<string> {
  const withoutComments = await transform(code, { minifyWhitespace: true, legalComments: 'none' });
  if (!isAscii(Buffer.from(withoutComments.code))) throw new Error('esbuild has left code that is not ASCII');
  return code.replaceAll(/[^\0-\x7f]/g, '?');
}

/** Bundles a thread into one script; `name` is its path in src without the ending. */
async function bundleThread(folder: string, name: string): Promise<string[]> {
  const { metafile } = await build({
    ...COMMON,
    absWorkingDir: ROOT,
    entryPoints: [`src/${name}.ts`],
    outfile: join(folder, `${name}.cjs`),
    bundle: true,
    format: 'cjs',
    define: DEFINE,
    banner: { js: MODULE_URL },
    metafile: true,
    logLevel: 'warning',
  });
  return Object.keys(metafile.inputs);
}
