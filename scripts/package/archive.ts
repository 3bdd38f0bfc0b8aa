import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { gzipSync } from 'node:zlib';

/** The one suite, component and architecture of the repository. */
export const SUITE = 'stable';
export const COMPONENT = 'main';
export const ARCHITECTURE = 'amd64';

/** A file of the repository's index. The file `Release` lists its path, size and hash. */
export interface IndexFile {
  /** The path of the file, relative to the folder of `Release`. */
  readonly path: string;
  readonly content: Buffer;
}

/** Sorts the stanzas of dpkg-scanpackages, which prints them in the random order of the folder. */
export function sortStanzas(scanned: string): string {
  const stanzas = scanned.split('\n\n').map((stanza) => stanza.trim());
  const files = stanzas
    .filter((stanza) => stanza !== '')
    .map((stanza) => ({ stanza, file: fieldOf(stanza, 'Filename') }));
  files.sort((a, b) => (basename(a.file) < basename(b.file) ? -1 : 1));
  return files.map(({ stanza }) => `${stanza}\n\n`).join('');
}

/** The value of a field that has one line; throws without it. */
export function fieldOf(stanza: string, field: string): string {
  const line = stanza.split('\n').find((each) => each.startsWith(`${field}: `));
  if (line === undefined) throw new Error(`a package without ${field}:\n${stanza.slice(0, 200)}`);
  return line.slice(field.length + 2);
}

/** The index file `Packages`, plain and compressed. */
export function indexFiles(packages: string): IndexFile[] {
  const folder = `${COMPONENT}/binary-${ARCHITECTURE}`;
  const plain = Buffer.from(packages);
  return [
    { path: `${folder}/Packages`, content: plain },
    { path: `${folder}/Packages.gz`, content: gzipSync(plain, { level: 9 }) },
  ];
}

/**
 * The text of Release, which is to be signed.
 *
 * It has no Valid-Until: the repository is signed at a release and then stays unchanged, on servers without the key.
 * After the date of that field every client's `apt-get update` would fail. The field protects only against a man in the
 * middle who withholds an upgrade. The text has no MD5 and no SHA-1, because apt 1.0 supports SHA256.
 */
export function releaseText(files: readonly IndexFile[], dateS: number): string {
  const sums = files.map(({ path, content }) => ` ${sha256(content)} ${String(content.length).padStart(8)} ${path}\n`);
  return `Origin: Klatch
Label: Klatch
Suite: ${SUITE}
Codename: ${SUITE}
Date: ${new Date(dateS * 1000).toUTCString().replace('GMT', 'UTC')}
Architectures: ${ARCHITECTURE}
Components: ${COMPONENT}
Description: Klatch, a self-hosted group messaging server
Acquire-By-Hash: yes
SHA256:
${sums.join('')}`;
}

/** The date of a Release in seconds since 1970; null where it has none, or an unreadable one. */
export function releaseDateS(release: string): number | null {
  const date = /^Date: (.*)$/m.exec(release)?.[1];
  const ms = date === undefined ? NaN : Date.parse(date);
  return Number.isNaN(ms) ? null : ms / 1000;
}

export function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
