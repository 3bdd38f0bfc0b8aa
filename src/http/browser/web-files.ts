import { createHash } from 'node:crypto';
import { listAssets, readAsset, readAssetBytes } from '../../assets.ts';

const FOLDER = 'web';
const BUILD_ID_DIGITS = 16;
const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  ['css', 'text/css; charset=utf-8'],
  ['js', 'text/javascript; charset=utf-8'],
  ['svg', 'image/svg+xml'],
]);
/** The encodings of compressed files, the preferred one first. */
export const webFileEncodings = ['br', 'gzip'] as const;
const SUFFIXES = { br: '.br', gzip: '.gz' } as const;

/** A file of the browser client, plain and compressed. */
interface WebFile {
  readonly mediaType: string;
  readonly plain: Buffer;
  readonly br: Buffer;
  readonly gzip: Buffer;
}

/** The browser client as it was built with the program. */
export interface WebFiles {
  /** The page's HTML, with placeholders for values that the server knows. */
  readonly shellHtml: string;
  /** Files by name; the name has a hash of the content. */
  readonly assets: ReadonlyMap<string, WebFile>;
}

/** The files of the browser client; null in a source tree in which the client was not built (`npm run web`). */
export function readWebFiles(): WebFiles | null {
  const shellHtml = readShellHtml();
  if (shellHtml === null) return null;
  return { shellHtml, assets: new Map(listPlainFileNames().map((name) => [name, readWebFile(name)])) };
}

/** The id of the browser client's build, which changes with its content. Null where the client was not built. */
export function readBuildId(): string | null {
  const shellHtml = readShellHtml();
  return shellHtml === null ? null : buildIdOf(shellHtml);
}

/**
 * A hash of the shell (the page's HTML), which changes with any file. The shell names the first files by hashes of
 * their content. The content of these files names further files by their hashes.
 */
export function buildIdOf(shellHtml: string): string {
  return createHash('sha256').update(shellHtml).digest('hex').slice(0, BUILD_ID_DIGITS);
}

function readShellHtml(): string | null {
  try {
    const shellHtml = readAsset(`${FOLDER}/shell.html`);
    // A shell with `{{script}}` is the template among the sources, not a built one.
    return shellHtml.includes('{{script}}') ? null : shellHtml;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function listPlainFileNames(): string[] {
  return listAssets(`${FOLDER}/assets`).filter((name) => MEDIA_TYPES.has(endingOf(name)));
}

function readWebFile(name: string): WebFile {
  const path = `${FOLDER}/assets/${name}`;
  return {
    mediaType: MEDIA_TYPES.get(endingOf(name))!,
    plain: readAssetBytes(path),
    br: readAssetBytes(`${path}${SUFFIXES.br}`),
    gzip: readAssetBytes(`${path}${SUFFIXES.gzip}`),
  };
}

function endingOf(name: string): string {
  return name.split('.').at(-1)!;
}
