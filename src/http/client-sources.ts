import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { sourceKey, type SourceKey } from '../model/source-key.ts';

/** Addresses whose source is remembered: to parse one takes longer than to parse a small post. */
const ADDRESSES = 10_000;

/** Whether the address at a distance from here (0: the connection's) belongs to a trusted proxy: Express's setting. */
export type TrustProxy = (address: string, distance: number) => boolean;

/** The network that a request counts for, also of one that does not pass through Express. */
export class ClientSources {
  readonly #trusts: TrustProxy;
  readonly #sources = new LRUCache<string, SourceKey>({ max: ADDRESSES });

  constructor(trusts: TrustProxy) {
    this.#trusts = trusts;
  }

  of(req: IncomingMessage): SourceKey {
    const address = this.#addressOf(req);
    let source = this.#sources.get(address);
    if (source === undefined) {
      source = sourceKey(address);
      this.#sources.set(address, source);
    }
    return source;
  }

  /** What `req.ip` of Express is: the address nearest to us that is no trusted proxy. */
  #addressOf(req: IncomingMessage): string {
    let address = req.socket.remoteAddress ?? '';
    const header = req.headers['x-forwarded-for'];
    if (header === undefined) return address;
    const forwarded = (Array.isArray(header) ? header.join(',') : header).split(',');
    for (let distance = 0; this.#trusts(address, distance); distance += 1) {
      const next = forwarded.pop()?.trim();
      if (next === undefined || next === '') break;
      address = next;
    }
    return address;
  }
}
