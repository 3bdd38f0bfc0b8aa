import { createHash, randomBytes } from 'node:crypto';
import type { Bus } from '../../bus/bus.ts';
import { KlatchError } from '../../errors.ts';
import { BoundedCache } from '../../model/bounded-cache.ts';
import type { Pool } from '../../storage/db/pool.ts';
import { findAndTouchSession, type FoundSession } from '../../storage/accounts/sessions.ts';
import type { AccountCaller, AnonymousCaller } from './caller.ts';
import { translateLostRead } from './database-errors.ts';

const TOKEN_BYTES = 32;
const TOKEN_PATTERN = /^kl[sb]_[A-Za-z0-9_-]{43}$/;
const MAX_CACHED_SESSIONS = 50_000;
/** A cached session is looked up again after this time, in case the event of its end got lost. */
const CACHE_TTL_MS = 60_000;
const MAX_CACHED_UNKNOWN_TOKENS = 10_000;
const UNKNOWN_TOKEN_TTL_MS = 5_000;
const LOOKUP_TIMEOUT_MS = 1_500;
/**
 * At most this many look-ups of a token for one request. A look-up is repeated if any session ended during it. If that
 * happens each time, the last result counts: the sessions that ended are others than the token's.
 */
const MAX_TOKEN_LOOKUP_ATTEMPTS = 3;

/** A new token of a session, shown once: `kls_` for people, `klb_` for bots, then 256 random bits. */
export function newSessionToken(kind: 'user' | 'bot'): { readonly token: string; readonly hash: string } {
  const token = `${kind === 'user' ? 'kls' : 'klb'}_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
  return { token, hash: hashSessionToken(token) };
}

/** SHA-256 (hex) of a token; the database finds the session by it. */
export function hashSessionToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Finds the account by the token of its session: the only way in for people and bots. */
export class SessionCache {
  /** Counts the requests with a token that belongs to no valid session, for metrics. */
  readonly counts = { unknown: 0 };
  readonly #pool: Pick<Pool, 'run'>;
  /** Sessions by the hash of their token. */
  readonly #sessionByTokenHash = new BoundedCache<string, FoundSession>(MAX_CACHED_SESSIONS, {
    ttl: CACHE_TTL_MS,
    ttlResolution: 1_000,
  });
  readonly #unknownTokenHashes = new BoundedCache<string, true>(MAX_CACHED_UNKNOWN_TOKENS, {
    ttl: UNKNOWN_TOKEN_TTL_MS,
  });
  #revocationGeneration = 0;

  constructor(pool: Pick<Pool, 'run'>, bus: Bus) {
    this.#pool = pool;
    bus.subscribe({
      sessionsEnded: (ids) => this.#evict((session) => ids.includes(session.id)),
      accountsChanged: (ids) => this.#evict((session) => ids.includes(session.accountId)),
      resync: (eventKinds) => {
        if (eventKinds.has('sessionsEnded') || eventKinds.has('accountsChanged')) this.#evict(() => true);
      },
    });
  }

  /**
   * The caller whose token this is. Throws `unauthenticated`. Rejects if the session is not cached and the database is
   * unavailable.
   */
  async authenticate(token: string, caller: Omit<AnonymousCaller, 'kind'>): Promise<AccountCaller> {
    const session = await this.#findCachedOrQuery(token);
    if (session === null) {
      this.counts.unknown += 1;
      throw new KlatchError('unauthenticated');
    }
    const { id: sessionId, scopes, ...account } = session;
    return { kind: 'account', ...account, sessionId, scopes: scopes === null ? null : new Set(scopes), ...caller };
  }

  async #findCachedOrQuery(token: string): Promise<FoundSession | null> {
    if (!TOKEN_PATTERN.test(token)) return null;
    const hash = hashSessionToken(token);
    const cached = this.#sessionByTokenHash.get(hash);
    if (cached !== undefined) return isExpired(cached) ? null : cached;
    if (this.#unknownTokenHashes.has(hash)) return null;
    let revocationGeneration = -1;
    let session: FoundSession | null = null;
    // The look-up is repeated if a session ended meanwhile, since its result may be older than the end.
    for (let n = 0; n < MAX_TOKEN_LOOKUP_ATTEMPTS && revocationGeneration !== this.#revocationGeneration; n += 1) {
      revocationGeneration = this.#revocationGeneration;
      session = await translateLostRead(this.#pool.run((sql) => findAndTouchSession(sql, hash), LOOKUP_TIMEOUT_MS));
    }
    if (session === null) this.#unknownTokenHashes.set(hash, true);
    else if (revocationGeneration === this.#revocationGeneration) this.#sessionByTokenHash.set(hash, session);
    return session;
  }

  #evict(matches: (session: FoundSession) => boolean): void {
    this.#revocationGeneration += 1;
    for (const [hash, session] of this.#sessionByTokenHash.entries())
      if (matches(session)) this.#sessionByTokenHash.delete(hash);
  }
}

function isExpired({ expiresAt }: FoundSession): boolean {
  return expiresAt !== null && expiresAt.getTime() <= Date.now();
}
