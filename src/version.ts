import { readAsset } from './assets.ts';

export function readVersion(): string {
  return (JSON.parse(readAsset('package.json')) as { version: string }).version;
}

/** The value of the header `User-Agent` in requests to receivers and push vendors. */
export function userAgent(): string {
  return `Klatch/${readVersion()}`;
}
