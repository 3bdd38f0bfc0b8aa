import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeCompanionDeb } from './companion.ts';
import { makeDeb } from './deb.ts';
import { makeInstallScript } from './install-sh.ts';
import { makeParts } from './parts.ts';
import { DIST } from './paths.ts';
import { makeRepository } from './repo.ts';
import { requireTools } from './tools.ts';
import { makeCompanionZip, makeZip } from './zip.ts';

/**
 * Makes all files to distribute, and dist/SHA256SUMS over all of dist/ except the repository, which has a signature.
 */
export async function makeRelease(): Promise<readonly string[]> {
  requireTools(['dpkg-deb', 'dpkg-scanpackages', 'dpkg-query', 'gpg', 'xz', 'zip', 'patchelf', 'strip']);
  const parts = await makeParts();
  const packages = [makeDeb(parts), makeCompanionDeb(), makeZip(parts), makeCompanionZip()];
  return [...packages, makeRepository(), makeInstallScript(), writeSums()];
}

/** Writes dist/SHA256SUMS in the format of `sha256sum -c`. */
function writeSums(): string {
  const sums = join(DIST, 'SHA256SUMS');
  const names = readdirSync(DIST).filter((name) => /\.(deb|zip|sh)$/.test(name) && statSync(join(DIST, name)).isFile());
  const lines = names.sort().map((name) => {
    const hash = createHash('sha256').update(readFileSync(join(DIST, name)));
    return `${hash.digest('hex')}  ${name}\n`;
  });
  writeFileSync(sums, lines.join(''));
  return sums;
}
