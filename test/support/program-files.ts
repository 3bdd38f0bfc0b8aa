import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');
/**
 * The folder of the bundled program, which a run of jest makes once (program-bundle.ts). Without it, tests start the
 * program from its sources.
 */
const BUNDLED = process.env['KLATCH_TEST_PROGRAM'];

/** The script of the program in the sources. A start takes 0.6 s more of CPU time than that of the bundle. */
export const SOURCE_MAIN = join(ROOT, 'src/main.ts');
/** The script of the program that tests start with Node. */
export const MAIN = BUNDLED === undefined ? SOURCE_MAIN : join(BUNDLED, 'lib/klatch.cjs');
/** The launcher of the program that tests start. */
export const LAUNCHER = join(BUNDLED ?? ROOT, 'bin/klatch');
