import type { ActivationProviderName } from '../model/proof-address.ts';
import type { LiveTransport } from '../model/transport.ts';

/**
 * The server's configuration after reading: every value checked, every unit in the name, every path absolute.
 * What a key means to an administrator stands in `reference.conf`; this is its shape inside the program.
 */
export interface Config {
  /** Absolute path of the file that was read. */
  readonly file: string;
  readonly projectName: string;
  /** Server secret: everything sealed at rest is sealed with a key derived from it. Never logged. */
  readonly secret: string;
  /** Folder of the server's state: lock, control socket, embedded database. */
  readonly dataDir: string;
  /** Public addresses for clients: ws://, wss://, tcp:// or tls:// only. */
  readonly publicEndpoints: readonly string[];
  /** The most that the heap of JavaScript may hold; null: what V8 chooses. */
  readonly heapBytes: number | null;
  readonly http: HttpConfig;
  readonly web: WebConfig;
  readonly metrics: MetricsConfig;
  readonly postgresql: PostgresqlConfig;
  readonly registration: Registration;
  readonly endpoints: readonly EndpointConfig[];
  readonly live: LiveConfig;
  /** The activation gate; null: there is none. */
  readonly activation: { readonly uri: string; readonly authToken: string } | null;
  /** Where codes are sent by mail; null: nowhere. */
  readonly smtp: SmtpConfig | null;
  /** Which provider proves an address, in this order; one that is not set up is passed over. */
  readonly activationProviders: readonly ActivationProviderName[];
  /** Public address that invite links begin with, without a trailing slash. */
  readonly inviteBaseUri: string;
  readonly push: PushConfig;
  readonly googlePush: GooglePushConfig;
  readonly applePush: ApplePushConfig;
  /** The keys that browsers' push services know this server by; null: nothing is pushed to browsers. */
  readonly webPush: WebPushConfig | null;
  readonly files: FileStoreConfig;
  readonly serverSigningKeys: readonly ServerKeyFiles[];
  readonly limits: LimitsConfig;
  readonly delivery: DeliveryConfig;
  readonly retention: RetentionConfig;
  readonly log: { readonly level: LogLevel; readonly format: 'auto' | 'json' | 'text' };
}

/** Who may get an account: anybody who proves an address, whom somebody invited, or nobody. */
export type Registration = 'open' | 'invite' | 'closed';
export type SmtpTls = 'starttls' | 'implicit' | 'none';

/** A listener for clients; with `tls` it is wss:// or tls://. */
export interface EndpointConfig {
  readonly type: LiveTransport;
  readonly interface: string;
  readonly port: number;
  /** Absolute paths of PEM files. */
  readonly tls: { readonly certificate: string; readonly key: string } | null;
}

/** Bounds of live connections. */
export interface LiveConfig {
  readonly maxFrameBytes: number;
  readonly authTimeoutMs: number;
  /** A connection that is silent so long is asked whether it lives; after the same time again it is closed. */
  readonly heartbeatMs: number;
  /** What may wait to be sent on one connection before it is closed. */
  readonly sendQueueBytes: number;
  readonly maxLiveConnections: number;
  readonly maxConnectionsPerUser: number;
  /** Connections that have not authenticated. */
  readonly maxUnauthenticatedConnections: number;
  /** Origins of browsers beside the one of `http.base-uri`; `["*"]`: any. */
  readonly allowedLiveOrigins: readonly string[];
}

export interface SmtpConfig {
  readonly host: string;
  readonly port: number;
  readonly tls: SmtpTls;
  readonly user: string | null;
  readonly password: string | null;
  readonly from: string;
  /** Absolute path of the letter's text; null: ours. */
  readonly emailTemplatePath: string | null;
}

/** What a push says: the message, who wrote it, or only that there is something. */
export type PushContent = 'full' | 'sender' | 'none';

/** How devices are told, whichever vendor's they are. */
export interface PushConfig {
  readonly content: PushContent;
  /** How long messages are gathered before a push about them. */
  readonly pushDebounceMs: number;
  /** Pushes under way to one vendor. */
  readonly maxInFlightPerVendor: number;
  /** The longest that a vendor may take for an answer. */
  readonly timeoutMs: number;
  /** Waits before each repeat; the last one repeats until it is given up. */
  readonly pushRetryDelaysMs: readonly number[];
  readonly pushExpiresAfterMs: number;
}

export interface GooglePushConfig {
  /** `key`: the absolute path of a service account's file, or its JSON. */
  readonly keys: readonly { readonly projectId: string; readonly key: string }[];
  readonly googlePushEndpoint: string;
  readonly tokenEndpoint: string;
}

export interface ApplePushConfig {
  readonly keys: readonly ApplePushKey[];
  /** Null: Apple's own, of the sandbox where a key says so. */
  readonly applePushEndpoint: string | null;
  /** Absolute path of a PEM file with authorities to trust beside the system's; null: none. */
  readonly extraAppleCaFile: string | null;
}

export interface ApplePushKey {
  readonly keyId: string;
  readonly teamId: string;
  /** Absolute path of the .p8 file. */
  readonly path: string;
  /** The app, which Apple calls the topic. */
  readonly bundleId: string;
  readonly sandbox: boolean;
}

/** VAPID (RFC 8292): both keys in base64url, the point uncompressed. */
export interface WebPushConfig {
  readonly public: string;
  readonly private: string;
  readonly vapidSubject: string;
}

/** Where files are kept. */
export interface FileStoreConfig {
  /** Absolute path of the folder of local files. Not used with `s3`. */
  readonly localFilesFolder: string;
  readonly s3: S3Config | null;
}

/** Whether files come through this server, or clients are sent to the bucket. */
export type S3Downloads = 'proxy' | 'redirect';

export interface S3Config {
  readonly bucket: string;
  readonly accessKey: string;
  readonly secretKey: string;
  readonly s3Endpoint: string;
  readonly region: string;
  /** True: the bucket is the beginning of the path; false: of the host name. */
  readonly pathStyle: boolean;
  readonly downloads: S3Downloads;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface HttpConfig {
  readonly interface: string;
  readonly port: number;
  /** Public base address, without a trailing slash. */
  readonly baseUri: string;
  /** Origins that browsers may call from; empty: none; `["*"]`: any. */
  readonly cors: readonly string[];
  /** Whether programs reach groups by the paths of other products, such as `/hooks/<token>`. */
  readonly callerPaths: boolean;
  /** Addresses and CIDR ranges of proxies whose `X-Forwarded-For` names the caller. */
  readonly trustedProxies: readonly string[];
  readonly maxBodyBytes: number;
  /** Of events of git hosts, where that is more than `maxBodyBytes`. */
  readonly maxEventBodyBytes: number;
  readonly maxHeaderBytes: number;
  readonly requestToResponseTimeoutMs: number;
  /** How long a stop waits for requests and deliveries in hand. */
  readonly stopDrainTimeoutMs: number;
}

/** The client that browsers are served. */
interface WebConfig {
  readonly webClientEnabled: boolean;
}

/** Where metrics are served from, on a port of their own. */
export interface MetricsConfig {
  readonly metricsEnabled: boolean;
  readonly interface: string;
  readonly port: number;
}

/** How far the connection to PostgreSQL is protected: encrypted, or with a server that proves to be the one that is named. */
export type DatabaseTlsMode = 'require' | 'verify-full';

/** Paths of PEM files, or null. */
export interface DatabaseTlsConfig {
  readonly mode: DatabaseTlsMode;
  /** The authorities that may have signed the server's certificate; null: those that Node brings. */
  readonly databaseCaFile: string | null;
  /** What Klatch proves itself with, where the database asks for it. */
  readonly certificate: string | null;
  readonly key: string | null;
}

export interface PostgresqlConfig {
  /** True: run a private server in the data directory; host, port, db, user and password are then not used. */
  readonly embedded: boolean;
  /** Folder of `initdb` and `postgres`, or null to look for them. Embedded only. */
  readonly binDir: string | null;
  /** A host name, an address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  /** The other servers of its cluster, in the order in which they are tried. */
  readonly otherHosts: readonly { readonly host: string; readonly port: number }[];
  readonly db: string;
  readonly user: string;
  readonly password: string;
  /** Null: without TLS. */
  readonly tls: DatabaseTlsConfig | null;
  /** True: a database that runs with `fsync = off` is accepted. */
  readonly allowFsyncOff: boolean;
  /** Connections of the general pool; intake, settling and listening have their own. */
  readonly generalPoolSize: number;
  /** Calls that may wait for a connection of one pool; one more is refused. */
  readonly poolQueue: number;
  readonly connectTimeoutMs: number;
  /** A query that has not answered by then loses its connection. */
  readonly databaseCallTimeoutMs: number;
  /** The same for one flush of posted messages. */
  readonly flushTimeoutMs: number;
  readonly lockTimeoutMs: number;
}

/** PEM files: Ed25519, PKCS#8 and SPKI. */
export interface ServerKeyFiles {
  readonly public: string;
  readonly private: string;
}

export interface LimitsConfig {
  readonly textCodePoints: number;
  readonly intakePosts: number;
  readonly intakeBytes: number;
  /** How long a post may wait in the intake queue before its flush begins. */
  readonly intakeTimeoutMs: number;
  readonly maxFlushPosts: number;
  readonly maxFlushBytes: number;
  /** Posts per second and token, the burst above it, and how long a post waits for its turn. */
  readonly postsPerSecondPerToken: number;
  readonly postBurstPerToken: number;
  readonly tokenQueueTimeoutMs: number;
  readonly unknownTokenTtlMs: number;
  readonly unknownTokenCacheSize: number;
  /** Answers about unknown tokens per second and source address before they are slowed. */
  readonly unknownTokensPerSecondPerSource: number;
  /** How long the event loop may parse and check what one source sends, within any second. */
  readonly sourceParseMsPerSecond: number;
  readonly hooksPerGroup: number;
  readonly hookRegistrationsPerGroupPerMinute: number;
  readonly hookChangesPerGroupPerMinute: number;
  /** Highest `klatch-hops` a post may carry plus one: at this number it is refused. */
  readonly hopLimit: number;
  /** Requests of one session per second, and the burst above it. */
  readonly sessionRequestRate: number;
  readonly sessionRequestBurst: number;
  readonly sessionsPerUser: number;
  readonly botsPerUser: number;
  readonly createdOrJoinedConversationsPerUser: number;
  readonly membersPerGroup: number;
  readonly invitesPerGroup: number;
  readonly devicesPerUser: number;
  /** Bytes of one file, of all of an account's, and of all. */
  readonly fileBytes: number;
  readonly storagePerUserBytes: number;
  readonly storageTotalBytes: number;
  /** Uploads under way, in all and of one account. */
  readonly concurrentUploads: number;
  readonly concurrentUploadsPerUser: number;
  /** Files of one message. */
  readonly attachmentsPerMessage: number;
  /** Activation codes: of the whole installation an hour, to one source address an hour, to one address a day. */
  readonly codesPerHourPerBudget: number;
  readonly codesPerSourcePerHour: number;
  readonly dailyCodesPerAddressAndNetwork: number;
}

export interface DeliveryConfig {
  /** What the address policy lets through beyond public addresses: CIDR, `loopback`, `private`, host globs. */
  readonly allow: readonly string[];
  readonly maxInFlight: number;
  readonly maxInFlightPerHost: number;
  readonly connectTimeoutMs: number;
  readonly responseHeadersTimeoutMs: number;
  readonly responseBytes: number;
  readonly responseBodyReadMs: number;
  readonly dnsTimeoutMs: number;
  readonly dnsCacheTtlMs: number;
  readonly dnsNegativeTtlMs: number;
  readonly dnsConcurrency: number;
  /** Waits before each repeat; the last one repeats for ever. */
  readonly retryDelaysMs: readonly number[];
  /** Longest `Retry-After` that is honoured. */
  readonly retryAfterMaxMs: number;
  /** Failing this long reads as `parked`. */
  readonly parkAfterMs: number;
}

export interface RetentionConfig {
  readonly idempotencyKeysMs: number;
  readonly deliveryLogMs: number;
  readonly deliveryLogRowsPerHook: number;
  readonly removedHooksMs: number;
  /** Files that no message has taken. */
  readonly orphanedFilesMs: number;
  readonly pushLogMs: number;
}
