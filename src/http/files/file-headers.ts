import type { ByteRange } from '../../files/store.ts';
import { isSafeImage } from '../../files/media-type.ts';
import type { FileRow } from '../../storage/files/files.ts';

/** Headers of an answer with a file. Its id is the ETag, since the bytes behind an id never change. */
export function fileHeaders(file: Pick<FileRow, 'id' | 'name' | 'type'>): Record<string, string> {
  const isInline = isSafeImage(file.type);
  return {
    'content-type': file.type === 'text/plain' ? 'text/plain; charset=utf-8' : file.type,
    'content-disposition': `${isInline ? 'inline' : 'attachment'}; ${filenameParameters(file.name)}`,
    etag: etagOf(file.id),
    // Only the client caches the file, and it asks each time whether it may still have the file.
    'cache-control': 'private, no-cache',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
    'referrer-policy': 'no-referrer',
    'accept-ranges': 'bytes',
  };
}

export function etagOf(id: string): string {
  return `"${id}"`;
}

/** RFC 6266: the name in ASCII for old clients, and in UTF-8 for the others. */
function filenameParameters(name: string): string {
  const ascii = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, '_');
  const encoded = encodeURIComponent(name).replaceAll(
    /['()*!]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `filename="${ascii}"; filename*=UTF-8''${encoded}`;
}

/** Whether one of the ETags in the header If-None-Match is that of the file (RFC 9110, weak comparison). */
export function matchesEtag(header: string | undefined, id: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etagOf(id));
}

/**
 * The bytes that a Range header asks for. `whole`: the header is absent or malformed, or asks for several parts.
 * `none`: the file does not have these bytes.
 */
export function parseByteRange(header: string | undefined, size: number): ByteRange | 'whole' | 'none' {
  const parts = /^bytes=[ \t]*(\d*)[ \t]*-[ \t]*(\d*)[ \t]*$/i.exec(header ?? '');
  if (parts === null) return 'whole';
  const [, first, last] = parts as unknown as [string, string, string];
  if (first === '' && last === '') return 'whole';
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'none' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return 'whole';
  if (start >= size) return 'none';
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) };
}
