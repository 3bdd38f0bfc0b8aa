import { sign } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { MAX_KEYS_THAT_SIGN, type ServerKey } from '../../model/server-key.ts';
import { announcedEndpoints } from './endpoints.ts';
import type { Services } from '../core/services.ts';

/** The server's signed statement about itself. */
interface SignedAbout {
  /** The statement as JSON; its bytes in UTF-8 are signed. */
  readonly statement: string;
  /** One signature for each key that signs; empty without server keys. `signature` is Ed25519 in base64. */
  readonly signatures: readonly { readonly key: string; readonly signature: string }[];
}

/**
 * A statement is reused for this long, since signing costs as much as the rest of the request, and anybody may ask for
 * it.
 */
const SIGNED_STATEMENT_CACHE_MS = 60_000;

/** Signs the server's statement about itself, again once the last one is a minute old. */
export class AboutSigner {
  readonly #config: Config;
  readonly #listenerUrls: readonly string[];
  readonly #keys: readonly ServerKey[];
  readonly #certificateFingerprints: readonly string[];
  #signed: SignedAbout | null = null;
  #signedAtMs = 0;

  constructor(parts: Pick<Services, 'config' | 'serverKeys' | 'certificateFingerprints' | 'listeners'>) {
    const { config, serverKeys, certificateFingerprints, listeners } = parts;
    this.#config = config;
    this.#listenerUrls = listeners;
    this.#certificateFingerprints = certificateFingerprints;
    this.#keys = serverKeys.slice(0, MAX_KEYS_THAT_SIGN);
  }

  /**
   * The current statement. `now` is the time of day, which the statement shows. If the clock was set back, the
   * statement is signed again.
   */
  current(now = new Date()): SignedAbout {
    const ageMs = now.getTime() - this.#signedAtMs;
    if (this.#signed === null || ageMs < 0 || ageMs >= SIGNED_STATEMENT_CACHE_MS) {
      this.#signed = this.#sign(now);
      this.#signedAtMs = now.getTime();
    }
    return this.#signed;
  }

  #sign(now: Date): SignedAbout {
    const config = this.#config;
    const statement = JSON.stringify({
      // Distinguishes the statement from any other JSON that these keys may sign in the future.
      type: 'klatch.about',
      projectName: config.projectName,
      endpoints: announcedEndpoints({ config, listeners: this.#listenerUrls }),
      // The certificates of the server's own endpoints. Behind a proxy that handles TLS, clients see the certificate of
      // the proxy.
      certificates: this.#certificateFingerprints,
      date: now.toISOString(),
    });
    const signatures = this.#keys.map(({ id, privateKey }) => ({
      key: id,
      signature: sign(null, Buffer.from(statement), privateKey).toString('base64'),
    }));
    return { statement, signatures };
  }
}
