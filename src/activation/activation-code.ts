import { createHmac, hkdfSync, randomInt, timingSafeEqual } from 'node:crypto';
import { siteNetworkKey, type SourceKey } from '../model/source-key.ts';

const CODE_DIGITS = 6;

/** The form of a code, whether this server or the activation gate checks it. */
export const CODE_PATTERN = /^[0-9]{6}$/;

/** A new code: six random digits. */
export function newCode(): string {
  return String(randomInt(10 ** CODE_DIGITS)).padStart(CODE_DIGITS, '0');
}

/**
 * Turns codes, and the sources of activations, into keyed hashes. The key is derived from the server's secret, so that
 * a copy of the database does not suffice to find a code. From a plain hash, six digits could be guessed in no time.
 */
export class ActivationHasher {
  readonly #key: Buffer;

  constructor(secret: string) {
    this.#key = Buffer.from(hkdfSync('sha256', secret, 'klatch', 'activation-1', 32));
  }

  /** The keyed hash of a code. It is valid only for the activation with this transaction hash. */
  codeVerifier(transactionHash: string, code: string): string {
    return this.#hmac('code', transactionHash, code).toString('hex');
  }

  /**
   * Whether the stored verifier is the keyed hash of this code. Without a stored verifier, a comparison is made too, so
   * that the time does not reveal whether there is a verifier.
   */
  matchesVerifier(transactionHash: string, code: string, verifier: string | null): boolean {
    const expected = Buffer.from(verifier ?? this.#hmac('none', transactionHash).toString('hex'), 'hex');
    const given = this.#hmac('code', transactionHash, code);
    return expected.length === given.length && timingSafeEqual(expected, given) && verifier !== null;
  }

  /**
   * The hashes under which the activations of a source and of its network are counted. `source` null: the control
   * socket.
   */
  hashSource(source: SourceKey | null): { readonly sourceHash: string; readonly networkHash: string } {
    const [own, network] = source === null ? ['control socket', 'control socket'] : [source, siteNetworkKey(source)];
    const hash = (key: string): string => this.#hmac('source', key).toString('hex');
    return { sourceHash: hash(own), networkHash: hash(network) };
  }

  #hmac(...parts: readonly string[]): Buffer {
    return createHmac('sha256', this.#key).update(parts.join('\n')).digest();
  }
}
