import { BoundedCache } from '../model/bounded-cache.ts';
import { DEVICE_TOKEN_SEAL_PURPOSE } from '../model/device.ts';
import type { Sealer } from '../storage/db/sealed.ts';

/** About 10 MB if all are browsers' tokens, which are the longest. */
const MAX_CACHED_TOKENS = 20_000;

/** Opens sealed device tokens, and caches those that were opened last. */
export class DeviceTokenCache {
  readonly #sealer: Sealer;
  readonly #tokenBySealed = new BoundedCache<string, string>(MAX_CACHED_TOKENS);

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Throws WrongSecretError, like the sealer. */
  open(sealed: string): string {
    const known = this.#tokenBySealed.get(sealed);
    if (known !== undefined) return known;
    const token = this.#sealer.open(DEVICE_TOKEN_SEAL_PURPOSE, sealed);
    this.#tokenBySealed.set(sealed, token);
    return token;
  }
}
