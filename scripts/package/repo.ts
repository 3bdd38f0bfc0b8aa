import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  ARCHITECTURE,
  COMPONENT,
  indexFiles,
  releaseDateS,
  releaseText,
  sha256,
  sortStanzas,
  SUITE,
  type IndexFile,
} from './archive.ts';
import { BUILD, DIST, sourceDateEpoch } from './paths.ts';
import { run, step } from './run.ts';
import { checkSignature, SigningKey } from './signing-key.ts';
import { requireTools } from './tools.ts';

/** The folder of the repository that `make repo` makes. */
export const REPO = join(DIST, 'repo');
/** The public key, in the repository and, below /usr/share/keyrings, on the machines that use it. */
export const KEYRING = 'klatch-archive-keyring.gpg';

/** Packages that the repository may hold. */
const PACKAGES = ['klatch', 'klatch-postgresql'];
const POOL = `pool/${COMPONENT}/k/klatch`;
/**
 * The number of index files that stay available by their hash, two for each publication. So a client with an earlier
 * InRelease still gets the files that it names.
 */
const KEPT_INDEX_FILES = 16;
/** Ending of the names of unfinished files. */
const PARTIAL = '.part';

/** The input of a publication. */
export interface RepositoryOptions {
  /** The folder of the repository; older packages in it stay available. */
  readonly folder: string;
  /** Package files to add. */
  readonly packages: readonly string[];
  /**
   * The date of Release, in seconds since 1970. If the published Release is not older, the new one is dated one second
   * after it: apt would otherwise keep the index that it has.
   */
  readonly dateS: number;
  readonly key: SigningKey;
}

/** `make repo`: makes dist/repo from the packages in dist/. Returns the folder. */
export function makeRepository(): string {
  requireTools(['dpkg-deb', 'dpkg-scanpackages', 'gpg']);
  const packages = readdirSync(DIST).filter((name) => name.endsWith('.deb'));
  const key = new SigningKey({
    wanted: process.env['SIGNING_KEY'],
    passphraseFile: process.env['SIGNING_PASSPHRASE_FILE'],
    gnupgHome: process.env['GNUPGHOME'],
    throwAwayFile: join(BUILD, 'throw-away-key.asc'),
  });
  try {
    key.open();
    step(`signing ${packages.length} packages with ${key.fingerprints.join(' and ')}`);
    publish({ folder: REPO, packages: packages.map((name) => join(DIST, name)), dateS: sourceDateEpoch(), key });
  } finally {
    key.close();
  }
  return REPO;
}

/**
 * Updates a repository in three steps. In this order a client that reads in between finds every file that its index
 * names:
 * - It writes packages and index files under new names.
 * - It writes the index under its fixed names.
 * - It writes the signature over the index.
 *
 * Each file is written under a temporary name and then renamed. apt from 1.2 on fetches the index by its hash and so
 * never gets a mixture. An older apt can get a mixture if a publication falls between two of its requests; it refuses
 * the mixture and has to retry.
 *
 * Does nothing when nothing is new, so that the signed files keep their dates.
 */
export function publish({ folder, packages, dateS, key }: RepositoryOptions): void {
  const dists = join(folder, 'dists', SUITE);
  removePartials(folder);
  mkdirSync(join(folder, POOL), { recursive: true });
  for (const file of packages) addPackage(folder, file, key.isThrowAway);
  const files = indexFiles(scan(folder));
  const keyring = join(folder, `${KEYRING}${PARTIAL}`);
  key.exportKeyring(keyring);
  if (!isNewer(folder, files, keyring)) return rmSync(keyring);

  for (const { path, content } of files) {
    write(join(dists, dirname(path), 'by-hash/SHA256', sha256(content)), content);
  }
  const release = releaseText(files, laterThan(dists, dateS));
  const signed = join(dists, `InRelease${PARTIAL}`);
  mkdirSync(dists, { recursive: true });
  writeFileSync(signed, key.clearSign(release));
  checkSignature(keyring, signed);
  renameSync(keyring, join(folder, KEYRING));
  for (const { path, content } of files) write(join(dists, path), content);
  write(join(dists, 'Release.gpg'), Buffer.from(key.detachSign(release)));
  write(join(dists, 'Release'), Buffer.from(release));
  rename(signed, join(dists, 'InRelease'));
  forgetOldIndexes(join(dists, dirname(files[0]!.path), 'by-hash/SHA256'), files);
}

/**
 * Puts a package into the pool. The contents of a published version must not change, because clients have them already.
 */
function addPackage(folder: string, file: string, mayReplace: boolean): void {
  const [name, architecture, version] = ['Package', 'Architecture', 'Version'].map((field) =>
    run('dpkg-deb', ['--field', file, field]).trim(),
  );
  if (!PACKAGES.includes(name!) || architecture !== ARCHITECTURE) {
    throw new Error(
      `${basename(file)} holds ${name} for ${architecture}: the repository is for ${PACKAGES.join(', ')}`,
    );
  }
  const content = readFileSync(file);
  const target = join(folder, POOL, `${name}_${version!.replace(/^\d+:/, '')}_${architecture}.deb`);
  if (existsSync(target) && !mayReplace && sha256(readFileSync(target)) !== sha256(content)) {
    throw new Error(
      `${name} ${version} is in the repository already, with other contents. Clients that have it would never notice: ` +
        'give the new one another version, or remove the old one from the pool if nobody has got it yet',
    );
  }
  write(target, content);
}

function scan(folder: string): string {
  const packages = run('dpkg-scanpackages', ['--multiversion', '--arch', ARCHITECTURE, `pool/${COMPONENT}`], {
    cwd: folder,
  });
  if (packages.trim() === '')
    throw new Error('there is no package in dist/ or in the repository: `make deb` makes one');
  return sortStanzas(packages);
}

/** Whether the state to publish differs from the published one, in its content or in its keys. */
function isNewer(folder: string, files: readonly IndexFile[], keyring: string): boolean {
  const dists = join(folder, 'dists', SUITE);
  const keyringNow = join(folder, KEYRING);
  const release = join(dists, 'Release');
  if (![keyringNow, release, join(dists, 'InRelease'), join(dists, 'Release.gpg')].every((file) => existsSync(file)))
    return true;
  if (!readFileSync(keyring).equals(readFileSync(keyringNow))) return true;
  const text = readFileSync(release, 'utf8');
  // InRelease is renamed last: its content shows whether the last publication was complete.
  if (!readFileSync(join(dists, 'InRelease'), 'utf8').includes(text)) return true;
  return (
    text !== releaseText(files, releaseDateS(text) ?? 0) ||
    files.some(({ path, content }) => !isContent(join(dists, path), content))
  );
}

/** The date, or one second after the published one: apt keeps the index that it has when the new date is not later. */
function laterThan(dists: string, dateS: number): number {
  const release = join(dists, 'Release');
  const publishedS = existsSync(release) ? releaseDateS(readFileSync(release, 'utf8')) : null;
  return publishedS === null || publishedS < dateS ? dateS : publishedS + 1;
}

function forgetOldIndexes(folder: string, current: readonly IndexFile[]): void {
  const names = current.map(({ content }) => sha256(content));
  const old = readdirSync(folder).filter((name) => !names.includes(name));
  const byAge = old
    .map((name) => ({ name, atMs: statSync(join(folder, name)).mtimeMs }))
    .sort((a, b) => b.atMs - a.atMs);
  for (const { name } of byAge.slice(KEPT_INDEX_FILES - names.length)) rmSync(join(folder, name));
}

/** Removes the files that a killed run left. */
function removePartials(folder: string): void {
  if (!existsSync(folder)) return;
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  for (const name of names.filter((each) => each.endsWith(PARTIAL))) rmSync(join(folder, name));
}

function write(file: string, content: Buffer): void {
  if (isContent(file, content)) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file + PARTIAL, content);
  rename(file + PARTIAL, file);
}

/**
 * Replaces a file. Sets the new file's time at least a second after that of the old one. Clients request only files
 * that were modified after the copy that they have.
 */
function rename(from: string, to: string): void {
  if (existsSync(to)) {
    const [beforeS, afterS] = [to, from].map((file) => Math.floor(statSync(file).mtimeMs / 1000)) as [number, number];
    if (beforeS >= afterS) utimesSync(from, beforeS + 1, beforeS + 1);
  }
  renameSync(from, to);
}

function isContent(file: string, content: Buffer): boolean {
  return existsSync(file) && readFileSync(file).equals(content);
}
