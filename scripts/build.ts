/** Bundles the server into one file, `dist/klatch.mjs`, with the files it reads beside it. */
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');
const out = join(root, 'dist');
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
await build({
  entryPoints: [join(root, 'src/main.ts')],
  outfile: join(out, 'klatch.mjs'),
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  // Libraries in CommonJS call require(); an ES module has none of its own.
  banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  logLevel: 'warning',
});
// Threads are started from scripts of their own: in CommonJS, so that they also run out of a text.
await build({
  entryPoints: [join(root, 'src/storage/settlement-thread.ts')],
  outfile: join(out, 'storage/settlement-thread.cjs'),
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'cjs',
  logLevel: 'warning',
});
for (const [from, to] of [
  ['src/config/reference.conf', 'config/reference.conf'],
  ['src/storage/migrations', 'storage/migrations'],
  ['etc/klatch', 'etc/klatch'],
  ['package.json', 'package.json'],
] as const) {
  cpSync(join(root, from), join(out, to), { recursive: true });
}
console.log('built dist/klatch.mjs');
