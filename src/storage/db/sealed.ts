import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, randomBytes, type KeyObject } from 'node:crypto';
import type { Sql, Transaction } from './connection.ts';

/** The configured `secret` is not the secret of this database. */
export class WrongSecretError extends Error {
  override readonly name = 'WrongSecretError';
}

const CANARY_PLAINTEXT = 'klatch';
/**
 * The name of the canary: a sealed text that tells whether a secret belongs to this database. It is the name of its row
 * in `setting`, and its purpose when sealed.
 */
export const CANARY_NAME = 'secret-canary';
const NONCE_BYTES = 12;
const AUTH_TAG_BYTES = 16;

/**
 * Seals values that must be readable again (integration tokens, hook secrets) with AES-256-GCM under a key derived from
 * the configured `secret`. Format: `1.` + base64url(nonce, tag, ciphertext). The purpose is authenticated, so that a
 * value moved from one column to another does not open.
 */
export class Sealer {
  /**
   * Created once: with plain bytes, each use would create a key, which takes ten times as long as the rest of the use.
   */
  readonly #key: KeyObject;

  constructor(secret: string) {
    this.#key = createSecretKey(Buffer.from(hkdfSync('sha256', secret, 'klatch', 'sealed-at-rest-1', 32)));
  }

  seal(authenticatedPurpose: string, plain: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce);
    cipher.setAAD(Buffer.from(authenticatedPurpose));
    const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
    return `1.${Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url')}`;
  }

  /** Throws WrongSecretError when the value was sealed with another secret, for another purpose, or was changed. */
  open(authenticatedPurpose: string, sealed: string): string {
    const bytes = Buffer.from(sealed.slice(2), 'base64url');
    if (!sealed.startsWith('1.') || bytes.length < NONCE_BYTES + AUTH_TAG_BYTES)
      throw new WrongSecretError('not a sealed value');
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES));
    decipher.setAAD(Buffer.from(authenticatedPurpose));
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + AUTH_TAG_BYTES));
    try {
      return decipher.update(bytes.subarray(NONCE_BYTES + AUTH_TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    } catch (cause) {
      throw new WrongSecretError('a sealed value does not open with this secret', { cause });
    }
  }
}

/** Whether a canary (a known text) was sealed with this secret. */
export function fitsCanary(sealer: Sealer, canary: string): boolean {
  try {
    return sealer.open(CANARY_NAME, canary) === CANARY_PLAINTEXT;
  } catch (error) {
    if (error instanceof WrongSecretError) return false;
    throw error;
  }
}

/** Writes a canary to a new database and checks it in an existing one, before a wrong secret seals anything. */
export async function createOrCheckCanary(sql: Sql, sealer: Sealer): Promise<void> {
  const name = CANARY_NAME;
  await sql`insert into setting (name, value) values (${name}, ${sealer.seal(name, CANARY_PLAINTEXT)}) on conflict (name) do nothing`;
  if (await opensCanary(sql, sealer)) return;
  throw new WrongSecretError(
    'secret differs from the one this database was made with: put the old value of `secret` back into server.conf, ' +
      'or move the database to the new one with "klatch keys rotate-secret"',
  );
}

/** Whether this secret opens the canary of a database; null where there is none yet. Read-only. */
export async function opensCanary(sql: Sql | Transaction, sealer: Sealer): Promise<boolean | null> {
  const [row] = await sql<{ value: string }[]>`select value from setting where name = ${CANARY_NAME}`;
  return row === undefined ? null : fitsCanary(sealer, row.value);
}
