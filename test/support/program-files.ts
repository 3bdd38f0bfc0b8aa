import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');
/** Made once per run of jest (program-bundle.ts); without it, tests start the sources. */
const BUNDLED = process.env['KLATCH_TEST_PROGRAM'];

/** The script of the program out of the sources: slower by 0.6 s of CPU time a start. */
export const SOURCE_MAIN = join(ROOT, 'src/main.ts');
/** The script of the program that tests start, for Node. */
export const MAIN = BUNDLED === undefined ? SOURCE_MAIN : join(BUNDLED, 'lib/klatch.cjs');
/** The same by its launcher. */
export const LAUNCHER = join(BUNDLED ?? ROOT, 'bin/klatch');
