/** The longest file name that file systems accept, in bytes of UTF-8. */
const MAX_NAME_BYTES = 255;
/** A suffix after the last dot is an extension up to this length, in bytes; a shortened name keeps it. */
const LONGEST_KEPT_EXTENSION_BYTES = 32;
/** Longer inputs are cut first: the work stays small for any input, and no name can be that long. */
const MAX_INPUT_LENGTH = 1_024;
const DEFAULT_NAME = 'file';

/**
 * Control characters, and characters that change the writing direction, hide text, or break lines: `gpj.exe` must not
 * look like `exe.jpg`.
 */
const INVISIBLE_CHARACTERS =
  /[\p{Cc}\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
/** Characters that some file systems reject. */
const RESERVED_CHARACTERS = /[<>:"|?*]/g;
/** Names of devices on Windows, with any extension. */
const WINDOWS_DEVICE_NAME = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\.|$)/i;

/**
 * Turns a given name into one that is valid on every file system. It is the part after the last separator, without
 * invisible characters, of at most 255 bytes, with its extension; `file` where nothing is left.
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
    // A leading dot hides a file, and trailing dots get lost.
    .replace(/^[. ]+/, '');
  const short = trimTrailingDotsSpaces(
    shortenKeepingExtension(trimTrailingDotsSpaces(clean).replace(WINDOWS_DEVICE_NAME, '_$&')),
  );
  return short === '' ? DEFAULT_NAME : short;
}

/** Removes trailing dots and spaces. A regular expression for the end of a text would be tried at each position. */
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

/** The beginning of the text: as many whole characters as fit. */
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
