import { createHash, type KeyObject } from 'node:crypto';

/** The public half of a server key, as everybody may see it. */
export interface PublicServerKey {
  /**
   * A fingerprint that stays as long as the key. It is the first 32 hexadecimal digits of the SHA-256 of the public key
   * as DER (SubjectPublicKeyInfo), which is what openssl writes as well.
   */
  readonly id: string;
  /** The public key as Standard Webhooks writes it: `whpk_` + base64 of its 32 bytes. */
  readonly public: string;
}

export interface ServerKey extends PublicServerKey {
  readonly privateKey: KeyObject;
}

/**
 * The maximum number of server keys that sign (contract, "The forwarded delivery"); the configuration may list more.
 */
export const MAX_KEYS_THAT_SIGN = 3;

const KEY_ID_HEX_DIGITS = 32;
/** The length of the prefix before the 32 bytes of the key, in the DER form of every Ed25519 public key. */
const DER_PREFIX_BYTES = 12;

/** An Ed25519 public key in the form in which it is shown. */
export function describePublicKey(publicKey: KeyObject): PublicServerKey {
  const der = publicKey.export({ type: 'spki', format: 'der' });
  return {
    id: createHash('sha256').update(der).digest('hex').slice(0, KEY_ID_HEX_DIGITS),
    public: `whpk_${der.subarray(DER_PREFIX_BYTES).toString('base64')}`,
  };
}
