import { createSecretKey, randomBytes, type KeyObject } from 'node:crypto';

/** Standard Webhooks asks for 24 to 64 random bytes. */
const SECRET_BYTES = 32;
const PREFIX = 'whsec_';

/** A new signing secret of a reverse webhook: `whsec_` + base64. */
export function newHookSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** The key of a `whsec_` secret. A KeyObject: signing with the bytes makes one each time, six times as slow. */
export function hookSecretKey(secret: string): KeyObject {
  return createSecretKey(secret.slice(PREFIX.length), 'base64');
}
