import { BoundedCache } from '../model/bounded-cache.ts';
import { DEVICE_TOKEN_SEAL_PURPOSE } from '../model/device.ts';
import type { Sealer } from '../storage/db/sealed.ts';

/** Some 10 MB where all are browsers', which are longest. */
const MAX_CACHED_TOKENS = 20_000;

/** What vendors know devices by, as it is kept and as it is sent. Those that were opened last are remembered. */
export class DeviceTokenCache {
  readonly #sealer: Sealer;
  readonly #tokenBySealed = new BoundedCache<string, string>(MAX_CACHED_TOKENS);

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Throws WrongSecretError as the sealer does. */
  open(sealed: string): string {
    const known = this.#tokenBySealed.get(sealed);
    if (known !== undefined) return known;
    const token = this.#sealer.open(DEVICE_TOKEN_SEAL_PURPOSE, sealed);
    this.#tokenBySealed.set(sealed, token);
    return token;
  }
}
