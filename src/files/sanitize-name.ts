/** The longest file name that file systems accept, in bytes of UTF-8. */
const MAX_NAME_BYTES = 255;
/**
 * The longest extension, in bytes, that a shortened name keeps. A longer suffix after the last dot does not count as an
 * extension.
 */
const LONGEST_KEPT_EXTENSION_BYTES = 32;
/**
 * The middle of an input longer than this, in UTF-16 units, is cut out first. So the work stays small for any input; no
 * valid name is that long.
 */
const MAX_INPUT_LENGTH = 1_024;
const DEFAULT_NAME = 'file';

/**
 * Control characters, and characters that change the writing direction, hide text, or break lines: `gpj.exe` must not
 * look like `exe.jpg`.
 */
const INVISIBLE_CHARACTERS =
  /[\p{Cc}\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
/** Characters that some file systems reject in names. */
const RESERVED_CHARACTERS = /[<>:"|?*]/g;
/** Names of devices on Windows, with any extension. */
const WINDOWS_DEVICE_NAME = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\.|$)/i;

/**
 * Turns a given name into one that is valid on every file system. The result is the part after the last `/` or `\`,
 * without invisible characters, shortened to 255 bytes before its extension. If nothing is left, the result is `file`.
 */
export function sanitizeFileName(given: string): string {
  const boundedInput =
    given.length > MAX_INPUT_LENGTH ? given.slice(0, MAX_INPUT_LENGTH / 2) + given.slice(-MAX_INPUT_LENGTH / 2) : given;
  const lastSegment = boundedInput
    .toWellFormed()
    .replaceAll('\ufffd', '_')
    .split(/[/\\]/)
    .findLast((part) => part.trim() !== '');
  const cleanedName = (lastSegment ?? '')
    .replaceAll(INVISIBLE_CHARACTERS, '')
    .replaceAll(RESERVED_CHARACTERS, '_')
    .replaceAll(/\s+/g, ' ')
    // Removes leading dots, which would hide the file on Unix.
    .replace(/^[. ]+/, '');
  const shortenedName = trimTrailingDotsSpaces(
    shortenKeepingExtension(trimTrailingDotsSpaces(cleanedName).replace(WINDOWS_DEVICE_NAME, '_$&')),
  );
  return shortenedName === '' ? DEFAULT_NAME : shortenedName;
}

/**
 * Removes trailing dots and spaces. Not with a regular expression, which would be tried at each position of the text.
 */
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

/** The longest beginning of the text, in whole characters, that fits into `maxBytes` of UTF-8. */
function truncateToBytes(text: string, maxBytes: number): string {
  let bytes = 0;
  let endIndex = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes) break;
    endIndex += character.length;
  }
  return text.slice(0, endIndex);
}
