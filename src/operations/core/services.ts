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

/** Dependencies of operations; `server.ts` builds them. */
export interface Services extends FileServices {
  readonly config: Config;
  readonly version: string;
  readonly startedAt: Date;
  /** The name of this process for the other nodes, and in the lease table: its data directory's identity. */
  readonly node: string;
  /** Addresses on which the process listens; each begins with a scheme. */
  readonly listeners: readonly string[];
  /** SHA-256 of the certificates that the server's endpoints show. */
  readonly certificateFingerprints: readonly string[];
  /** The address of the metrics; null if they are not served. */
  readonly metricsUrl: string | null;
  readonly database: Database;
  /** "PostgreSQL 18.4, embedded": for people. */
  readonly databaseVersion: string;
  readonly sealer: Sealer;
  /** Server keys in the order of the configuration; the first `MAX_KEYS_THAT_SIGN` sign. */
  readonly serverKeys: readonly ServerKey[];
  readonly messageLog: MessageLog;
  readonly refusedPosts: RefusedPostRecorder;
  readonly bus: Bus;
  readonly tokens: IntegrationTokenCache;
  readonly sessions: SessionCache;
  readonly sessionCookie: SessionCookie;
  /** The providers of codes that prove an address, and their metrics. */
  readonly activations: ActivationCodes;
  /** Requests by session. */
  readonly sessionRequestLimiter: RateLimiter<number>;
  /** Signals that somebody is writing, by conversation and account. */
  readonly typingLimiterByMember: RateLimiter<NumberPair>;
  /** How long the event loop parses what each source sends. */
  readonly parseBudget: ParseBudget;
  readonly searchLimiterByPerson: SearchLimiterByPerson;
  /** Accounts with a live connection in the foreground, as far as this node knows. */
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
  /**
   * Hooks whose receivers seem to answer posts of their group's webhook with further ones, as far as this node sees.
   */
  readonly loopingHooks: () => readonly HookReference[];
  /** Makes the group's notice about the return of an overdue post come soon. It also comes without this call. */
  readonly lookForReturnedExpectations: () => void;
  readonly deliveryReport: DeliveryReportCache;
  readonly log: Log;
}
