import type { Bus } from '../../bus/bus.ts';
import type { Config } from '../../config/config.ts';
import type { FileServices } from '../../files/file-services.ts';
import type { Log } from '../../log.ts';
import type { ExampleRequest } from '../../model/example-request.ts';
import type { AccountId } from '../../model/ids.ts';
import type { ServerKey } from '../../model/server-key.ts';
import type { AddressPolicy } from '../../outbound/address-policy.ts';
import type { HttpAttemptOutcome } from '../../outbound/delivery-client.ts';
import type { PushQueue } from '../../push/queue.ts';
import type { Database } from '../../storage/database.ts';
import type { HookReference } from '../../storage/hooks/hook-control.ts';
import type { ExampleTarget, PingTarget } from '../../storage/hooks/hook-ping.ts';
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
  /** The id of this node, by which other nodes and the lease table name it: the identity of its data directory. */
  readonly node: string;
  /** Addresses on which the process listens; each begins with a scheme. */
  readonly listeners: readonly string[];
  /** SHA-256 of the TLS certificates of the server's own endpoints. */
  readonly certificateFingerprints: readonly string[];
  /** The URL of the metrics; null: they are not served. */
  readonly metricsUrl: string | null;
  readonly database: Database;
  /** The version of the database for people, such as "PostgreSQL 18.4, embedded". */
  readonly databaseVersion: string;
  readonly sealer: Sealer;
  /** The server keys in the order of the configuration. The first `MAX_KEYS_THAT_SIGN` of them sign. */
  readonly serverKeys: readonly ServerKey[];
  readonly messageLog: MessageLog;
  readonly refusedPosts: RefusedPostRecorder;
  readonly bus: Bus;
  readonly tokens: IntegrationTokenCache;
  readonly sessions: SessionCache;
  readonly sessionCookie: SessionCookie;
  /** Sends and checks the codes that prove an address. */
  readonly activations: ActivationCodes;
  /** Limits the requests of each session. */
  readonly sessionRequestLimiter: RateLimiter<number>;
  /** Limits the signals that somebody is typing, by conversation and account. */
  readonly typingLimiterByMember: RateLimiter<NumberPair>;
  /** Limits how long the event loop parses input, by source. */
  readonly parseBudget: ParseBudget;
  readonly searchLimiterByPerson: SearchLimiterByPerson;
  /** Accounts with a live connection in the foreground, as far as this node knows. */
  readonly onlineAccounts: () => readonly AccountId[];
  readonly push: PushQueue;
  readonly policy: AddressPolicy;
  /** Limits the registrations of reverse webhooks, by group. */
  readonly hookRegistrationLimiterByGroup: RateLimiter<number>;
  /** Limits the changes and redeliveries of reverse webhooks, by group. */
  readonly hookChangeLimiterByGroup: RateLimiter<number>;
  /** Sends a ping to a reverse webhook. Resolves to its outcome within 8 s; null: too many pings are under way. */
  readonly sendPingUnlessBusy: (target: PingTarget) => Promise<HttpAttemptOutcome | null>;
  /** Null: the hook asks for a signature that the server cannot make. */
  readonly buildExampleRequest: (target: ExampleTarget) => ExampleRequest | null;
  readonly deliveriesInFlight: () => number;
  /**
   * Hooks that seem to be in a loop, as far as this node sees. Their receivers seem to answer posts of the group's
   * webhook with further posts.
   */
  readonly loopingHooks: () => readonly HookReference[];
  /**
   * Makes the monitor of expectations look at once for overdue ones whose post has come. It also looks every few
   * seconds.
   */
  readonly recheckOverdueExpectations: () => void;
  readonly deliveryReport: DeliveryReportCache;
  readonly log: Log;
}
