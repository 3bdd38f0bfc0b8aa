import { existsSync } from 'node:fs';

const KEY_FILE_EXTENSION = /\.(?:pem|key|crt|cer|cert|p8|der|json)$/i;

/**
 * How a message names the file of a key: by its path only where that is surely one. What neither exists nor ends like
 * the name of such a file may be the key itself, put where a path belongs.
 */
export function keyPathForMessage(path: string): string {
  return KEY_FILE_EXTENSION.test(path) || existsSync(path) ? path : 'the file that it names';
}
