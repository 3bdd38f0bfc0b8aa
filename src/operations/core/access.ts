import { createHash, randomBytes } from 'node:crypto';
import type { Bus } from '../../bus/bus.ts';
import type { LimitsConfig } from '../../config/config.ts';
import { KlatchError } from '../../errors.ts';
import { BoundedCache } from '../../model/bounded-cache.ts';
import type { ConversationId } from '../../model/ids.ts';
import { INCOMING_SECRET_SEAL_PURPOSE, incomingSecretOf, type IncomingSecret } from '../../model/incoming-secret.ts';
import { findActiveAccountByNick, type Account } from '../../storage/accounts/accounts.ts';
import type { Sql, Transaction } from '../../storage/db/connection.ts';
import { DatabaseUnavailableError } from '../../storage/db/database-error.ts';
import { findGroup, findGroupsByTitle } from '../../storage/groups/groups.ts';
import { findHookDetails, type HookDetails } from '../../storage/hooks/hook-list.ts';
import { findIntegration, type Integration, type HashedAndSealedToken } from '../../storage/groups/integrations.ts';
import type { Pool } from '../../storage/db/pool.ts';
import type { Sealer } from '../../storage/db/sealed.ts';
import { translateLostRead } from './database-errors.ts';

/**
 * A new token is 256 random bits in base64url. `TOKEN_PATTERN` accepts other forms too: tokens of old installations may
 * look different.
 */
const TOKEN_BYTES = 32;
/** The form of every token, also of old ones. Any other text is refused without asking the database. */
const TOKEN_PATTERN = /^[A-Za-z0-9_-]{16,128}$/;
const MAX_CACHED_TOKENS = 50_000;
/** A cached token is looked up again after this time, in case the event that it was revoked got lost. */
const CACHE_TTL_MS = 60_000;
/**
 * The time-out of a look-up: a caller has to learn within 2 s that the database is unavailable. A look-up uses an index
 * and takes about 1 ms.
 */
const LOOKUP_TIMEOUT_MS = 1_500;
const SEAL_PURPOSE = 'integration-token';

/** A new integration token, with the hash that finds it, and its sealed form, in which it is stored. */
export function newIntegrationToken(sealer: Sealer): HashedAndSealedToken & { readonly token: string } {
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  return { token, hash: hashIntegrationToken(token), sealed: sealer.seal(SEAL_PURPOSE, token) };
}

export function openIntegrationToken(sealer: Sealer, sealed: string): string {
  return sealer.open(SEAL_PURPOSE, sealed);
}

function hashIntegrationToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/**
 * The integration of a valid token, and the opened secret that verifies signed posts. `incomingSecret` null: the group
 * has no such secret.
 */
export interface IntegrationWithOpenedSecret extends Integration {
  readonly incomingSecret: IncomingSecret | null;
}

/** A cached integration. It is outdated if a resync of the bus has raised `#busResyncCount` since it was cached. */
interface CachedIntegration {
  readonly integration: IntegrationWithOpenedSecret;
  readonly busResyncCountWhenCached: number;
}

/**
 * Finds the group that an integration token belongs to; every request to a webhook address needs this. The cache may be
 * outdated, but the statement that writes a message checks the token in the database: a replaced token is refused at
 * once.
 */
export class IntegrationTokenCache {
  /** Counts the requests with a token that belongs to no group, for metrics. */
  readonly counts = { unknown: 0 };
  readonly #pool: Pick<Pool, 'run'>;
  readonly #sealer: Sealer;
  readonly #integrationByToken = new BoundedCache<string, CachedIntegration>(MAX_CACHED_TOKENS, {
    ttl: CACHE_TTL_MS,
    ttlResolution: 1_000,
    noDeleteOnStaleGet: true,
  });
  readonly #unknownTokens: BoundedCache<string, true>;
  readonly #lookupByToken = new Map<string, Promise<IntegrationWithOpenedSecret | null>>();
  #revocationGeneration = 0;
  /** Rises when revocation events may have been lost: integrations that were cached before are outdated. */
  #busResyncCount = 0;

  constructor(pool: Pick<Pool, 'run'>, bus: Bus, limits: LimitsConfig, sealer: Sealer) {
    this.#pool = pool;
    this.#sealer = sealer;
    this.#unknownTokens = new BoundedCache(limits.unknownTokenCacheSize, { ttl: limits.unknownTokenTtlMs });
    bus.subscribe({
      tokensRevoked: (hashes) => this.#evict(new Set(hashes)),
      resync: (eventKinds) => {
        if (!eventKinds.has('tokensRevoked')) return;
        this.#revocationGeneration += 1;
        this.#busResyncCount += 1;
      },
    });
  }

  /** The token's integration if it is cached and not outdated: the fast path of every post. */
  findCached(token: string): IntegrationWithOpenedSecret | undefined {
    const cached = this.#integrationByToken.get(token);
    return cached?.busResyncCountWhenCached === this.#busResyncCount ? cached.integration : undefined;
  }

  /**
   * The token's integration; null: no group has the token. While the database is unavailable, it returns an outdated
   * integration from the cache, so that the post can wait for the database. If the cache has none, it rejects.
   */
  async find(token: string): Promise<IntegrationWithOpenedSecret | null> {
    const cached = this.findCached(token);
    if (cached !== undefined) return cached;
    if (!TOKEN_PATTERN.test(token) || this.#unknownTokens.has(token)) return this.#countUnknownToken();
    // Posts with the same token at the same time share one look-up.
    const lookup = this.#lookupByToken.get(token) ?? this.#queryAndCache(token);
    this.#lookupByToken.set(token, lookup);
    try {
      return (await lookup) ?? this.#countUnknownToken();
    } catch (error) {
      const outdatedEntry = this.#integrationByToken.get(token, { allowStale: true });
      const isAway = error instanceof KlatchError && error.code === 'database_unavailable';
      if (outdatedEntry === undefined || !(isAway || error instanceof DatabaseUnavailableError)) throw error;
      return outdatedEntry.integration;
    } finally {
      this.#lookupByToken.delete(token);
    }
  }

  /** The token's integration as the database has it now. Only a token that is cached as unknown is not looked up. */
  async findBypassingCache(token: string): Promise<IntegrationWithOpenedSecret | null> {
    // The result is not cached, and no running look-up is shared: that one may have begun before a revocation.
    if (!TOKEN_PATTERN.test(token) || this.#unknownTokens.has(token)) return this.#countUnknownToken();
    const integration = await this.#query(token);
    if (integration === null) this.#unknownTokens.set(token, true);
    const cached = this.#integrationByToken.get(token);
    if (integration === null || integration.archived || cached?.integration.admission !== integration.admission)
      this.#integrationByToken.delete(token);
    return integration ?? this.#countUnknownToken();
  }

  #countUnknownToken(): null {
    this.counts.unknown += 1;
    return null;
  }

  async #queryAndCache(token: string): Promise<IntegrationWithOpenedSecret | null> {
    const revocationGeneration = this.#revocationGeneration;
    const integration = await this.#query(token);
    // An integration is not cached if a token was revoked during the look-up, since the result may be older than the
    // revocation. An archived group is not cached either, so that posts succeed as soon as the group is active again.
    if (integration === null) this.#unknownTokens.set(token, true);
    else if (revocationGeneration === this.#revocationGeneration && !integration.archived)
      this.#integrationByToken.set(token, { integration, busResyncCountWhenCached: this.#busResyncCount });
    return integration;
  }

  async #query(token: string): Promise<IntegrationWithOpenedSecret | null> {
    const integration = await translateLostRead(
      this.#pool.run((sql) => findIntegration(sql, hashIntegrationToken(token)), LOOKUP_TIMEOUT_MS),
    );
    return integration === null ? null : { ...integration, incomingSecret: this.#openIncomingSecret(integration) };
  }

  #openIncomingSecret({ incomingSecretSealed: sealed, signedOnly }: Integration): IncomingSecret | null {
    if (sealed === null) return null;
    return incomingSecretOf(this.#sealer.open(INCOMING_SECRET_SEAL_PURPOSE, sealed), signedOnly);
  }

  #evict(hashes: ReadonlySet<string>): void {
    this.#revocationGeneration += 1;
    for (const [token, { integration }] of this.#integrationByToken.entries()) {
      if (hashes.has(integration.tokenHash)) this.#integrationByToken.delete(token);
    }
  }
}

/**
 * The group with this number, or with this title if only one group has it. Throws `not_found`, and `invalid_input` if
 * several groups have the title.
 */
export async function resolveGroup(pool: Pool, reference: string | number): Promise<ConversationId> {
  const groupNumber =
    typeof reference === 'number' ? reference : /^\d{1,15}$/.test(reference) ? Number(reference) : null;
  const groupIds = await translateLostRead(
    pool.run(async (sql) => {
      if (groupNumber === null) return findGroupsByTitle(sql, String(reference));
      const group = await findGroup(sql, groupNumber as ConversationId);
      return group === null ? [] : [group.id];
    }),
  );
  if (groupIds.length === 0) {
    const sentence = `There is no group ${reference}: look at the list of groups`;
    throw new KlatchError('not_found', { sentence });
  }
  if (groupIds.length > 1) {
    const sentence = `Several groups are called ${reference}: give the number (${groupIds.join(', ')})`;
    throw new KlatchError('invalid_input', { sentence });
  }
  return groupIds[0]!;
}

/** The active account with this nick. Throws `not_found`. */
export async function resolveActiveAccount(sql: Sql | Transaction, nick: string): Promise<Account> {
  const account = await findActiveAccountByNick(sql, nick);
  if (account === null) {
    const sentence = `There is no user with the nick ${nick}: check the spelling, or search for the person`;
    throw new KlatchError('not_found', { sentence });
  }
  return account;
}

/** The hook with this number, also a removed one until its row is deleted. Throws `not_found`. */
export async function resolveHookEvenRemoved(sql: Sql | Transaction, id: number): Promise<HookDetails> {
  const hook = await findHookDetails(sql, id);
  if (hook === null) {
    const sentence = `There is no reverse webhook ${id}: look at the list of them`;
    throw new KlatchError('not_found', { sentence });
  }
  return hook;
}
