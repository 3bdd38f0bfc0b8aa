/** File systems take no longer names, in bytes of UTF-8. */
const MAX_NAME_BYTES = 255;
/** What stands behind the last dot is an ending up to this length, in bytes; kept when a name is shortened. */
const LONGEST_KEPT_EXTENSION_BYTES = 32;
/** Longer ones are cut before they are looked at: more than a name can have in the end, and little work whatever it is. */
const MAX_INPUT_LENGTH = 1_024;
const DEFAULT_NAME = 'file';

/** Controls, and what turns the direction of writing, hides, or breaks lines: `gpj.exe` must not look like `exe.jpg`. */
const INVISIBLE_CHARACTERS =
  /[\p{Cc}\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
/** What some file systems do not take. */
const RESERVED_CHARACTERS = /[<>:"|?*]/g;
/** Names that are devices on Windows, with any ending. */
const WINDOWS_DEVICE_NAME = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\.|$)/i;

/**
 * A name that a file can have anywhere, out of what somebody called it: the part behind the last separator, without what
 * cannot be seen, of at most 255 bytes, with its ending; `file` where nothing is left.
 */
export function sanitizeFileName(given: string): string {
  const cut =
    given.length > MAX_INPUT_LENGTH ? given.slice(0, MAX_INPUT_LENGTH / 2) + given.slice(-MAX_INPUT_LENGTH / 2) : given;
  const last = cut
    .toWellFormed()
    .replaceAll('\ufffd', '_')
    .split(/[/\\]/)
    .findLast((part) => part.trim() !== '');
  const clean = (last ?? '')
    .replaceAll(INVISIBLE_CHARACTERS, '')
    .replaceAll(RESERVED_CHARACTERS, '_')
    .replaceAll(/\s+/g, ' ')
    // A dot in front hides a file, dots behind it get lost.
    .replace(/^[. ]+/, '');
  const short = trimTrailingDotsSpaces(
    shortenKeepingExtension(trimTrailingDotsSpaces(clean).replace(WINDOWS_DEVICE_NAME, '_$&')),
  );
  return short === '' ? DEFAULT_NAME : short;
}

/** Without dots and spaces behind it. A pattern for the end of a text is tried at each of its places. */
function trimTrailingDotsSpaces(name: string): string {
  let end = name.length;
  while (end > 0 && (name[end - 1] === '.' || name[end - 1] === ' ')) end -= 1;
  return name.slice(0, end);
}

function shortenKeepingExtension(name: string): string {
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name;
  const dot = name.lastIndexOf('.');
  const extension =
    dot > 0 && Buffer.byteLength(name.slice(dot)) <= LONGEST_KEPT_EXTENSION_BYTES ? name.slice(dot) : '';
  const maxBytes = MAX_NAME_BYTES - Buffer.byteLength(extension);
  return trimTrailingDotsSpaces(truncateToBytes(extension === '' ? name : name.slice(0, dot), maxBytes)) + extension;
}

/** As many whole characters as fit. */
function truncateToBytes(text: string, maxBytes: number): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes) break;
    end += character.length;
  }
  return text.slice(0, end);
}
