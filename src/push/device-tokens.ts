import { BoundedCache } from '../model/bounded-cache.ts';
import { DEVICE_TOKEN } from '../model/device.ts';
import type { Sealer } from '../storage/db/sealed.ts';

/** Some 10 MB where all are browsers', which are longest. */
const MAX_OPENED = 20_000;

/** What vendors know devices by, as it is kept and as it is sent. Those that were opened last are remembered. */
export class DeviceTokens {
  readonly #sealer: Sealer;
  readonly #opened = new BoundedCache<string, string>(MAX_OPENED);

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Throws WrongSecretError as the sealer does. */
  open(sealed: string): string {
    const known = this.#opened.get(sealed);
    if (known !== undefined) return known;
    const token = this.#sealer.open(DEVICE_TOKEN, sealed);
    this.#opened.set(sealed, token);
    return token;
  }
}
