import { existsSync } from 'node:fs';

const KEY_FILE_EXTENSION = /\.(?:pem|key|crt|cer|cert|p8|der|json)$/i;

/**
 * How a message names the file of a key: by its path only where that surely is a path. A text that neither exists nor
 * ends like such a file name may be the key itself, written in the wrong place.
 */
export function keyPathForMessage(path: string): string {
  return KEY_FILE_EXTENSION.test(path) || existsSync(path) ? path : 'the file that it names';
}
