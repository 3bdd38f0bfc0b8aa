import { isUtf8 } from 'node:buffer';
import { fileTypeFromBuffer } from 'file-type';

/** The number of bytes that identify a file's type. */
export const SNIFFED_BYTES = 4_100;

/** The type of files that nothing is known about. */
const UNKNOWN_MEDIA_TYPE = 'application/octet-stream';

/** Types that a browser may display: images that cannot contain a program. */
const SAFE_IMAGE_TYPES: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
]);

/** Control characters that do not occur in text. */
// oxlint-disable-next-line no-control-regex -- these are meant
const NON_TEXT_CHARACTERS = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/;

/** Whether a browser may show a file of this type instead of saving it. */
export function isSafeImage(type: string): boolean {
  return SAFE_IMAGE_TYPES.has(type);
}

/** The type of a file, from its first bytes; its name and its declared type are ignored. */
export async function sniffType(head: Buffer): Promise<string> {
  const bytes = head.subarray(0, SNIFFED_BYTES);
  const found = await fileTypeFromBuffer(bytes).catch(() => undefined); // A failing reader finds no type.
  if (found !== undefined) return bareMediaTypeOrUnknown(found.mime);
  return bytes.length > 0 && isText(bytes) ? 'text/plain' : UNKNOWN_MEDIA_TYPE;
}

/** The type without parameters; a type with characters that could end a header is unknown. */
function bareMediaTypeOrUnknown(mime: string): string {
  const type = mime.split(';', 1)[0]!.trim().toLowerCase();
  if (type === 'image/apng') return 'image/png';
  return /^[\w.+-]+\/[\w.+-]+$/.test(type) ? type : UNKNOWN_MEDIA_TYPE;
}

/** UTF-8 without control characters; the last character may be incomplete. */
function isText(bytes: Buffer): boolean {
  for (let cut = 0; cut <= 3 && cut < bytes.length; cut += 1) {
    const whole = bytes.subarray(0, bytes.length - cut);
    if (isUtf8(whole)) return !NON_TEXT_CHARACTERS.test(whole.toString('utf8'));
  }
  return false;
}
