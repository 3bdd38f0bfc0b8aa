import type { Bus } from '../../bus/bus.ts';
import type { Config } from '../../config/config.ts';
import type { FileServices } from '../../files/file-services.ts';
import type { Log } from '../../log.ts';
import type { AccountId } from '../../model/ids.ts';
import type { ServerKey } from '../../model/server-key.ts';
import type { AddressPolicy } from '../../outbound/address-policy.ts';
import type { HttpAttemptOutcome } from '../../outbound/delivery-client.ts';
import type { PushQueue } from '../../push/queue.ts';
import type { Database } from '../../storage/database.ts';
import type { HookReference, PingTarget } from '../../storage/hooks/hook-control.ts';
import type { MessageLog } from '../../storage/messages/message-log.ts';
import type { Sealer } from '../../storage/db/sealed.ts';
import type { IntegrationTokenCache } from './access.ts';
import type { ActivationCodes } from './activation-codes.ts';
import type { DeliveryReportCache } from './delivery-report-cache.ts';
import type { ParseBudget } from './parse-budget.ts';
import type { NumberPair, RateLimiter } from './rate-limiter.ts';
import type { RefusedPostRecorder } from './refused-post-recorder.ts';
import type { SearchLimiterByPerson } from './search-limiter.ts';
import type { SessionCache } from './session-cache.ts';
import type { SessionCookie } from './session-cookie.ts';

/** What operations work with; `server.ts` builds it. */
export interface Services extends FileServices {
  readonly config: Config;
  readonly version: string;
  readonly startedAt: Date;
  /** Who this process is to the other nodes, and to the lease table: its data directory's identity. */
  readonly node: string;
  /** Where it listens, as addresses that begin with a scheme. */
  readonly listeners: readonly string[];
  /** SHA-256 of the certificates that its endpoints show. */
  readonly certificateFingerprints: readonly string[];
  /** Where the metrics are served; null when they are not. */
  readonly metricsUrl: string | null;
  readonly database: Database;
  /** "PostgreSQL 18.4, embedded": for people. */
  readonly databaseVersion: string;
  readonly sealer: Sealer;
  /** In the order of the configuration; the first `MAX_KEYS_THAT_SIGN` sign. */
  readonly serverKeys: readonly ServerKey[];
  readonly messageLog: MessageLog;
  readonly refusedPosts: RefusedPostRecorder;
  readonly bus: Bus;
  readonly tokens: IntegrationTokenCache;
  readonly sessions: SessionCache;
  readonly sessionCookie: SessionCookie;
  /** The ways of proving an address, and what was counted of them. */
  readonly activations: ActivationCodes;
  /** Requests by session. */
  readonly sessionRequestLimiter: RateLimiter<number>;
  /** The word that somebody is writing, by conversation and account. */
  readonly typingLimiterByMember: RateLimiter<NumberPair>;
  /** How long the event loop parses what each source sends. */
  readonly parseBudget: ParseBudget;
  readonly searchLimiterByPerson: SearchLimiterByPerson;
  /** Who has a live connection in the foreground, as far as this node knows. */
  readonly onlineAccounts: () => readonly AccountId[];
  readonly push: PushQueue;
  readonly policy: AddressPolicy;
  /** Registrations of reverse webhooks by group. */
  readonly hookRegistrationLimiterByGroup: RateLimiter<number>;
  /** Changes of reverse webhooks, and redeliveries, by group. */
  readonly hookChangeLimiterByGroup: RateLimiter<number>;
  /** Sends one ping; resolves, within 8 s, with its outcome, or null when too many are on their way. */
  readonly sendPingUnlessBusy: (target: PingTarget) => Promise<HttpAttemptOutcome | null>;
  readonly deliveriesInFlight: () => number;
  /** Hooks whose receivers seem to answer posts of their group's webhook with further ones, as far as this node sees. */
  readonly loopingHooks: () => readonly HookReference[];
  /** Lets the group be told soon that a post came for which it waited too long; told also without. */
  readonly lookForReturnedExpectations: () => void;
  readonly deliveryReport: DeliveryReportCache;
  readonly log: Log;
}
