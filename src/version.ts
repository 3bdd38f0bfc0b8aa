import { readAsset } from './assets.ts';

export function readVersion(): string {
  return (JSON.parse(readAsset('package.json')) as { version: string }).version;
}

/** The header `User-Agent` of requests to receivers and push vendors. */
export function userAgent(): string {
  return `Klatch/${readVersion()}`;
}
