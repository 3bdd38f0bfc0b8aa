import { sign } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { MAX_KEYS_THAT_SIGN, type ServerKey } from '../../model/server-key.ts';
import { announcedEndpoints } from './endpoints.ts';
import type { Services } from '../core/services.ts';

/** The server's signed statement about itself. */
interface SignedAbout {
  /** JSON, and the exact bytes (UTF-8) that are signed. */
  readonly statement: string;
  /** One for each key that signs; empty without server keys. `signature` is the base64 of the 64 bytes of Ed25519. */
  readonly signatures: readonly { readonly key: string; readonly signature: string }[];
}

/** A statement is reused for this long: signing costs as much as the rest of the request, and anybody may ask. */
const SIGNED_STATEMENT_CACHE_MS = 60_000;

/** The server's statement about itself, signed again when it is a minute old. */
export class AboutSigner {
  readonly #config: Config;
  readonly #listeners: readonly string[];
  readonly #keys: readonly ServerKey[];
  readonly #certificateFingerprints: readonly string[];
  #signed: SignedAbout | null = null;
  #signedAtMs = 0;

  constructor(parts: Pick<Services, 'config' | 'serverKeys' | 'certificateFingerprints' | 'listeners'>) {
    const { config, serverKeys, certificateFingerprints, listeners } = parts;
    this.#config = config;
    this.#listeners = listeners;
    this.#certificateFingerprints = certificateFingerprints;
    this.#keys = serverKeys.slice(0, MAX_KEYS_THAT_SIGN);
  }

  /**
   * `now` is the wall clock, which the statement shows. After the clock was put back, the statement is signed again.
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
      // So that no other JSON which these keys may sign one day can be taken for this.
      type: 'klatch.about',
      projectName: config.projectName,
      endpoints: announcedEndpoints({ config, listeners: this.#listeners }),
      // Certificates of the server's own endpoints; where a proxy ends TLS, clients see the proxy's.
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
