import { existsSync } from 'node:fs';

const KEY_FILE_EXTENSION = /\.(?:pem|key|crt|cer|cert|p8|der|json)$/i;

/**
 * How a message names the file of a key. It contains the path only if the file exists or has the extension of a key
 * file. Otherwise the text may be the key itself, which somebody wrote in place of a path.
 */
export function keyPathForMessage(path: string): string {
  return KEY_FILE_EXTENSION.test(path) || existsSync(path) ? path : 'the file that it names';
}
