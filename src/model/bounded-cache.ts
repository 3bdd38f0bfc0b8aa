import { LRUCache } from 'lru-cache';

/**
 * A cache of at most `maxEntries` entries, which drops the least recently used one. Its memory grows with its content.
 * With the option `max` of lru-cache, it would allocate for all entries at once (4 MiB and 15 ms for 100,000 of them).
 */
export class BoundedCache<Key extends {}, Value extends {}> extends LRUCache<Key, Value> {
  constructor(
    maxEntries: number,
    options: Pick<LRUCache.Options<Key, Value, unknown>, 'ttl' | 'ttlResolution' | 'perf' | 'noDeleteOnStaleGet'> = {},
  ) {
    super({ ...options, maxSize: maxEntries, sizeCalculation: () => 1 });
  }
}
