import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build, type Metafile } from 'esbuild';
import { libraryOf } from './licences.ts';
import { BUILD, ROOT } from './paths.ts';

/** The number of digits of the hash in a file's name. */
const HASH_DIGITS = 8;

/**
 * Builds the browser client into a folder: `shell.html`, whose placeholders the server fills, and `assets/` with files
 * that have hashes in their names. Each file in `assets/` exists three times: plain, as `.br` and as `.gz`. At the end
 * this function removes other files in `assets/`, so that servers of the same sources find all files at any moment.
 * Returns the names of the npm packages whose code it contains.
 */
export async function buildWeb(folder = join(BUILD, 'web')): Promise<string[]> {
  const { metafile, outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: { main: 'web/main.tsx', style: 'web/style.css' },
    outdir: 'assets',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: ['chrome120', 'firefox120', 'safari17.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfig: 'web/tsconfig.json',
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'warning',
  });
  const icon = readFileSync(join(ROOT, 'web/icon.svg'));
  const iconName = `icon-${createHash('sha256').update(icon).digest('hex').slice(0, HASH_DIGITS)}.svg`;
  const files = new Map([
    [iconName, icon as Uint8Array],
    ...outputFiles.map(({ path, contents }) => [basename(path), contents] as const),
  ]);
  const shell = fillNames(readFileSync(join(ROOT, 'web/shell.html'), 'utf8'), {
    icon: iconName,
    script: outputOf(metafile, 'web/main.tsx'),
    style: outputOf(metafile, 'web/style.css'),
  }).replace('{{preloads}}', () => preloadsOf(metafile, 'web/main.tsx'));
  const assets = join(folder, 'assets');
  mkdirSync(assets, { recursive: true });
  const written = new Set([...files].flatMap(([name, bytes]) => writeCompressed(assets, name, bytes)));
  writeFileSync(join(folder, 'shell.html'), shell);
  for (const name of readdirSync(assets)) if (!written.has(name)) rmSync(join(assets, name));
  return [
    ...new Set(
      Object.keys(metafile.inputs)
        .map(libraryOf)
        .filter((each) => each !== null),
    ),
  ].sort();
}

function outputOf({ outputs }: Metafile, entryPoint: string): string {
  const found = Object.entries(outputs).find(([, output]) => output.entryPoint === entryPoint);
  if (found === undefined) throw new Error(`esbuild has made nothing of ${entryPoint}`);
  return basename(found[0]);
}

/**
 * Preload links to the modules that an entry point imports. Without them a browser requests these modules only when it
 * has the entry point. Modules that are imported dynamically have no links.
 */
function preloadsOf({ outputs }: Metafile, entryPoint: string): string {
  const names = new Set<string>();
  const visit = (path: string): void => {
    for (const { path: imported, kind } of outputs[path]!.imports) {
      if (kind !== 'import-statement' || names.has(imported)) continue;
      names.add(imported);
      visit(imported);
    }
  };
  visit(Object.keys(outputs).find((path) => outputs[path]!.entryPoint === entryPoint)!);
  const links = [...names].map((path) => `<link rel="modulepreload" href="{{path}}assets/${basename(path)}" />`);
  return links.join('\n    ');
}

function fillNames(shell: string, names: Readonly<Record<string, string>>): string {
  return shell.replaceAll(/\{\{(icon|script|style)\}\}/g, (_, part: string) => names[part]!);
}

/** Compresses at build time, so that a server spends no time on it. Returns the names of the files. */
function writeCompressed(folder: string, name: string, bytes: Uint8Array): string[] {
  const forms: readonly [ending: string, content: Uint8Array][] = [
    ['', bytes],
    ['.br', brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } })],
    ['.gz', gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION })],
  ];
  return forms.map(([ending, content]) => {
    writeFileSync(join(folder, name + ending), content);
    return name + ending;
  });
}
