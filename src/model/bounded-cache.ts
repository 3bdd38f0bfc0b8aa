import { LRUCache } from 'lru-cache';

/**
 * A cache that forgets what was used longest ago, of at most `entries` entries. Its memory grows with what is in it:
 * with its option `max`, lru-cache allocates for all entries at once (4 MiB and 15 ms for 100,000 of them).
 */
export class BoundedCache<Key extends {}, Value extends {}> extends LRUCache<Key, Value> {
  constructor(
    entries: number,
    options: Pick<LRUCache.Options<Key, Value, unknown>, 'ttl' | 'ttlResolution' | 'perf' | 'noDeleteOnStaleGet'> = {},
  ) {
    super({ ...options, maxSize: entries, sizeCalculation: () => 1 });
  }
}
