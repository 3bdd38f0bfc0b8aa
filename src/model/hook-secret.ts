import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';

/** The length of a new secret. Standard Webhooks asks for 24 to 64 random bytes. */
const SECRET_BYTES = 32;
const PREFIX = 'whsec_';

/** A new signing secret of a reverse webhook: `whsec_` + base64. */
export function newHookSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** The key of a `whsec_` secret, as a KeyObject: signing with bytes creates one each time and is six times as slow. */
export function hookSecretKey(secret: string): KeyObject {
  return createSecretKey(secret.slice(PREFIX.length), 'base64');
}

/** The length of Mattermost's tokens. A token of 26 hexadecimal digits holds 104 bits. */
const HOOK_TOKEN_HEX_DIGITS = 26;

/**
 * A token by which a receiver that cannot verify signatures recognizes requests: 26 characters of 0-9 and a-f. It is
 * derived from the secret, so it changes with the secret, and it reveals nothing about the secret.
 */
export function hookToken(secretKey: KeyObject): string {
  return createHmac('sha256', secretKey).update('klatch hook token').digest('hex').slice(0, HOOK_TOKEN_HEX_DIGITS);
}
