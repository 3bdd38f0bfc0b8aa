import type { ActivationProviderName } from '../model/proof-address.ts';
import type { LiveTransport } from '../model/transport.ts';

/**
 * The server's configuration after reading: every value checked, every unit in the name, every path absolute.
 * `reference.conf` explains the keys to administrators; this interface is their structure inside the program.
 */
export interface Config {
  /** Absolute path of the file that was read. */
  readonly file: string;
  readonly projectName: string;
  /** The server secret, from which the key of all sealed data is derived. Never logged. */
  readonly secret: string;
  /** Folder of the server's state: lock, control socket, embedded database. */
  readonly dataDir: string;
  /** Public addresses for clients: ws://, wss://, tcp:// or tls:// only. */
  readonly publicEndpoints: readonly string[];
  /** The limit of the JavaScript heap; null: V8's own limit. */
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
  /** The mail server that sends codes; null: none. */
  readonly smtp: SmtpConfig | null;
  /** The providers that prove addresses, in order of preference; providers that are not configured are skipped. */
  readonly activationProviders: readonly ActivationProviderName[];
  /** Public address that invite links begin with, without a trailing slash. */
  readonly inviteBaseUri: string;
  readonly push: PushConfig;
  readonly googlePush: GooglePushConfig;
  readonly applePush: ApplePushConfig;
  /** The keys that identify this server to browsers' push services; null: no pushes to browsers. */
  readonly webPush: WebPushConfig | null;
  readonly files: FileStoreConfig;
  readonly serverSigningKeys: readonly ServerKeyFiles[];
  readonly limits: LimitsConfig;
  readonly delivery: DeliveryConfig;
  readonly retention: RetentionConfig;
  readonly log: { readonly level: LogLevel; readonly format: 'auto' | 'json' | 'text' };
}

/** Who may get an account: everybody who proves an address, only invited people, or nobody. */
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
  /**
   * The server pings a connection that was silent for this time, and closes it after the same time without an answer.
   */
  readonly heartbeatMs: number;
  /** Unsent bytes of one connection at which the server closes it. */
  readonly sendQueueBytes: number;
  readonly maxLiveConnections: number;
  readonly maxConnectionsPerUser: number;
  /** The limit of connections that have not authenticated yet. */
  readonly maxUnauthenticatedConnections: number;
  /** Allowed origins of browsers in addition to the one of `http.base-uri`; `["*"]`: any. */
  readonly allowedLiveOrigins: readonly string[];
}

export interface SmtpConfig {
  readonly host: string;
  readonly port: number;
  readonly tls: SmtpTls;
  readonly user: string | null;
  readonly password: string | null;
  readonly from: string;
  /** Absolute path of the e-mail's template; null: the default template. */
  readonly emailTemplatePath: string | null;
}

/** The content of a push: the message, only its sender, or only that there is a message. */
export type PushContent = 'full' | 'sender' | 'none';

/** The settings of pushes to devices of all vendors. */
export interface PushConfig {
  readonly content: PushContent;
  /** How long the server collects messages before it sends a push about them. */
  readonly pushDebounceMs: number;
  /** The limit of concurrent pushes to one vendor. */
  readonly maxInFlightPerVendor: number;
  /** The longest that a vendor may take for an answer. */
  readonly timeoutMs: number;
  /** The waits before each retry; the last one applies to all further retries, until the push expires. */
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
  /** Null: Apple's own endpoint, or that of its sandbox for keys with `sandbox`. */
  readonly applePushEndpoint: string | null;
  /** Absolute path of a PEM file with authorities to trust beside the system's; null: none. */
  readonly extraAppleCaFile: string | null;
}

export interface ApplePushKey {
  readonly keyId: string;
  readonly teamId: string;
  /** Absolute path of the .p8 file. */
  readonly path: string;
  /** The id of the app, which Apple calls the topic. */
  readonly bundleId: string;
  readonly sandbox: boolean;
}

/** VAPID (RFC 8292): both keys in base64url, the point uncompressed. */
export interface WebPushConfig {
  readonly public: string;
  readonly private: string;
  readonly vapidSubject: string;
}

/** The settings of the file store. */
export interface FileStoreConfig {
  /** Absolute path of the folder of local files. Not used with `s3`. */
  readonly localFilesFolder: string;
  readonly s3: S3Config | null;
}

/** Whether downloads go through this server, or clients are redirected to the bucket. */
export type S3Downloads = 'proxy' | 'redirect';

export interface S3Config {
  readonly bucket: string;
  readonly accessKey: string;
  readonly secretKey: string;
  readonly s3Endpoint: string;
  readonly region: string;
  /** True: the bucket's name is the first part of the path; false: the first part of the host name. */
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
  /** Whether programs can post by the paths of other products, such as `/hooks/<token>`. */
  readonly callerPaths: boolean;
  /** Addresses and CIDR ranges of proxies whose `X-Forwarded-For` names the caller. */
  readonly trustedProxies: readonly string[];
  readonly maxBodyBytes: number;
  /** The limit for events of git hosts, if it is greater than `maxBodyBytes`. */
  readonly maxEventBodyBytes: number;
  readonly maxHeaderBytes: number;
  readonly requestToResponseTimeoutMs: number;
  /** How long a stop waits for running requests and deliveries. */
  readonly stopDrainTimeoutMs: number;
}

/** The settings of the browser client. */
interface WebConfig {
  readonly webClientEnabled: boolean;
}

/** The settings of the metrics, which have a port of their own. */
export interface MetricsConfig {
  readonly metricsEnabled: boolean;
  readonly interface: string;
  readonly port: number;
}

/**
 * The protection of the connection to PostgreSQL. `require`: encryption only. `verify-full`: the server's certificate
 * must also prove its name.
 */
export type DatabaseTlsMode = 'require' | 'verify-full';

/** Paths of PEM files, or null. */
export interface DatabaseTlsConfig {
  readonly mode: DatabaseTlsMode;
  /** The certificate authorities to trust for the server's certificate; null: those of Node. */
  readonly databaseCaFile: string | null;
  /** The client certificate, for a database that requests one. */
  readonly certificate: string | null;
  readonly key: string | null;
}

export interface PostgresqlConfig {
  /** True: run a private server in the data directory; host, port, db, user and password are then not used. */
  readonly embedded: boolean;
  /** Folder of `initdb` and `postgres`; null: the server searches for it. Only for the embedded database. */
  readonly binDir: string | null;
  /** A host name, an address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  /** The other servers of the database's cluster, in the order in which they are tried. */
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
  /** The limit of calls that wait for a connection of one pool; further calls are refused. */
  readonly poolQueue: number;
  readonly connectTimeoutMs: number;
  /** The connection of a query without an answer is closed after this time. */
  readonly databaseCallTimeoutMs: number;
  /** The same limit for one flush of posted messages. */
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
  /** How long the event loop may parse and check the input of one source, within any second. */
  readonly sourceParseMsPerSecond: number;
  readonly hooksPerGroup: number;
  readonly hookRegistrationsPerGroupPerMinute: number;
  readonly hookChangesPerGroupPerMinute: number;
  /** A post whose hop count (`klatch-hops`) reaches this number is refused. */
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
  /** The limits of one file, of all files of an account, and of all files. */
  readonly fileBytes: number;
  readonly storagePerUserBytes: number;
  readonly storageTotalBytes: number;
  /** The limits of concurrent uploads, in total and of one account. */
  readonly concurrentUploads: number;
  readonly concurrentUploadsPerUser: number;
  /** The limit of files of one message. */
  readonly attachmentsPerMessage: number;
  /** Activation codes: of the whole installation an hour, to one source address an hour, to one address a day. */
  readonly codesPerHourPerBudget: number;
  readonly codesPerSourcePerHour: number;
  readonly dailyCodesPerAddressAndNetwork: number;
}

export interface DeliveryConfig {
  /**
   * The targets that the address policy allows in addition to public addresses: CIDR, `loopback`, `private`, host
   * globs.
   */
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
  /** The waits before each retry; the last one applies to all further retries. */
  readonly retryDelaysMs: readonly number[];
  /** Longest `Retry-After` that is honoured. */
  readonly retryAfterMaxMs: number;
  /** A hook that has failed for this long counts as `parked`. */
  readonly parkAfterMs: number;
}

export interface RetentionConfig {
  readonly idempotencyKeysMs: number;
  readonly deliveryLogMs: number;
  readonly deliveryLogRowsPerHook: number;
  readonly removedHooksMs: number;
  /** How long a file is kept that belongs to no message. */
  readonly orphanedFilesMs: number;
  readonly pushLogMs: number;
}
