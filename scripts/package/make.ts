/**
 * Makes the files to distribute, one target a run: `node scripts/package/make.ts deb`. Intermediate files are in
 * build/, results in dist/.
 * - `VERSION=1.2.3` builds another version than that of package.json.
 * - `SOURCE_DATE_EPOCH` sets another date than the commit's.
 * - `DPKG_DEB_COMPRESSOR_LEVEL=0` makes larger packages in less time.
 */
import { mkdirSync } from 'node:fs';
import { bundle } from './bundle.ts';
import { makeCompanionDeb } from './companion.ts';
import { makeDeb } from './deb.ts';
import { makeInstallScript } from './install-sh.ts';
import { makeParts } from './parts.ts';
import { BUILD, DIST } from './paths.ts';
import { makeRelease } from './release.ts';
import { makeRepository } from './repo.ts';
import { requireTools } from './tools.ts';
import { makeCompanionZip, makeZip } from './zip.ts';

/** The function that makes each target, and returns the paths of its results. */
const TARGETS: Readonly<Record<string, () => Promise<readonly string[]>>> = {
  bundle: async () => [(await bundle()).folder],
  binary: async () => [(await makeParts()).binary],
  deb: async () => {
    requireTools(['dpkg-deb', 'xz', 'patchelf', 'strip']);
    return [makeDeb(await makeParts()), makeCompanionDeb()];
  },
  zip: async () => {
    requireTools(['zip', 'patchelf', 'strip']);
    return [makeZip(await makeParts()), makeCompanionZip()];
  },
  repo: async () => [makeRepository()],
  'install-sh': async () => [makeInstallScript()],
  release: makeRelease,
};

const target = TARGETS[process.argv[2] ?? ''];
if (target === undefined) {
  console.error(`usage: make.ts ${Object.keys(TARGETS).join('|')}`);
  process.exit(64);
}
mkdirSync(BUILD, { recursive: true });
mkdirSync(DIST, { recursive: true });
try {
  for (const made of await target()) console.log(`made ${made.slice(made.indexOf('/dist/') + 1)}`);
} catch (error) {
  console.error(`make: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
