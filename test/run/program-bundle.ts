import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { stop } from 'esbuild';
import { bundle } from '../../scripts/package/bundle.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/**
 * Makes the program that tests start (program-files.ts) in an empty folder: the bundle that the packages contain, and
 * the launcher of the source tree for it. From then on the processes and threads of this process cache compiled code
 * there.
 */
export async function makeTestProgram(folder: string): Promise<void> {
  await bundle(join(folder, 'lib'));
  await stop();
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const launcher = await readFile(join(ROOT, 'bin/klatch'), 'utf8');
  const bundled = launcher.replace('$root/src/main.ts', '$root/lib/klatch.cjs');
  if (bundled === launcher) throw new Error('bin/klatch starts another script than src/main.ts: adapt makeTestProgram');
  await mkdir(join(folder, 'bin'));
  await writeFile(join(folder, 'bin/klatch'), bundled, { mode: 0o755 });
  process.env['KLATCH_TEST_PROGRAM'] = folder;
  process.env['NODE_COMPILE_CACHE'] = join(folder, 'cache');
}
