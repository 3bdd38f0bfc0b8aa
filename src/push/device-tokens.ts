import { BoundedCache } from '../model/bounded-cache.ts';
import { DEVICE_TOKEN_SEAL_PURPOSE } from '../model/device.ts';
import type { Sealer } from '../storage/db/sealed.ts';

/** The most tokens in the cache. They take about 10 MB if all are those of browsers, which are the longest. */
const MAX_CACHED_TOKENS = 20_000;

/** Decrypts sealed device tokens, and caches those that were used last. */
export class DeviceTokenCache {
  readonly #sealer: Sealer;
  readonly #tokenBySealed = new BoundedCache<string, string>(MAX_CACHED_TOKENS);

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Decrypts a token. Throws WrongSecretError, as the sealer does. */
  open(sealed: string): string {
    const cachedToken = this.#tokenBySealed.get(sealed);
    if (cachedToken !== undefined) return cachedToken;
    const token = this.#sealer.open(DEVICE_TOKEN_SEAL_PURPOSE, sealed);
    this.#tokenBySealed.set(sealed, token);
    return token;
  }
}
