import { randomBytes } from 'node:crypto';

/** Standard Webhooks asks for 24 to 64 random bytes. */
const SECRET_BYTES = 32;
const PREFIX = 'whsec_';

/** A new signing secret of a reverse webhook: `whsec_` + base64. */
export function newHookSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** The key bytes of a `whsec_` secret. */
export function secretKey(secret: string): Buffer {
  return Buffer.from(secret.slice(PREFIX.length), 'base64');
}
