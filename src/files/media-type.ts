import { isUtf8 } from 'node:buffer';
import { fileTypeFromBuffer } from 'file-type';

/** The number of bytes at the beginning of a file from which its type is recognized. */
export const SNIFFED_BYTES = 4_100;

/** The media type for files whose type is not recognized. */
const UNKNOWN_MEDIA_TYPE = 'application/octet-stream';

/** Types that a browser may display: images that cannot contain a program. */
const SAFE_IMAGE_TYPES: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
]);

/** Control characters that do not occur in text, so a file with one of them is not `text/plain`. */
// oxlint-disable-next-line no-control-regex -- these are meant
const NON_TEXT_CHARACTERS = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/;

/** Whether a browser may show a file of this type instead of saving it. */
export function isSafeImage(type: string): boolean {
  return SAFE_IMAGE_TYPES.has(type);
}

/**
 * Recognizes the media type of a file from its first bytes. The file's name and the type that the client declared do
 * not matter.
 */
export async function sniffType(head: Buffer): Promise<string> {
  const bytes = head.subarray(0, SNIFFED_BYTES);
  const found = await fileTypeFromBuffer(bytes).catch(() => undefined); // A failing reader finds no type.
  if (found !== undefined) return bareMediaTypeOrUnknown(found.mime);
  return bytes.length > 0 && isText(bytes) ? 'text/plain' : UNKNOWN_MEDIA_TYPE;
}

/**
 * The media type without parameters. An animated PNG counts as `image/png`. A type with characters that could end an
 * HTTP header becomes the unknown type.
 */
function bareMediaTypeOrUnknown(mime: string): string {
  const type = mime.split(';', 1)[0]!.trim().toLowerCase();
  if (type === 'image/apng') return 'image/png';
  return /^[\w.+-]+\/[\w.+-]+$/.test(type) ? type : UNKNOWN_MEDIA_TYPE;
}

/**
 * True if the bytes are UTF-8 without control characters. The last character may be incomplete, since `bytes` is only
 * the beginning of a file.
 */
function isText(bytes: Buffer): boolean {
  for (let cut = 0; cut <= 3 && cut < bytes.length; cut += 1) {
    const wholeCharacters = bytes.subarray(0, bytes.length - cut);
    if (isUtf8(wholeCharacters)) return !NON_TEXT_CHARACTERS.test(wholeCharacters.toString('utf8'));
  }
  return false;
}
