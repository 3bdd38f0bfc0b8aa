import { existsSync } from 'node:fs';

const EXTENSION = /\.(?:pem|key|crt|cer|cert|p8|der|json)$/i;

/**
 * How a message names the file of a key: by its path only where that is surely one. What neither exists nor ends like
 * the name of such a file may be the key itself, put where a path belongs.
 */
export function keyFileName(path: string): string {
  return EXTENSION.test(path) || existsSync(path) ? path : 'the file that it names';
}
