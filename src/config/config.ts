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
  readonly metrics: MetricsConfig;
  readonly postgresql: PostgresqlConfig;
  readonly activation: { readonly uri: string; readonly authToken: string } | null;
  readonly googlePushKeys: readonly { readonly projectId: string; readonly key: string }[];
  readonly serverKeys: readonly ServerKeyFiles[];
  readonly limits: LimitsConfig;
  readonly delivery: DeliveryConfig;
  readonly retention: RetentionConfig;
  readonly log: { readonly level: LogLevel; readonly format: 'auto' | 'json' | 'text' };
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface HttpConfig {
  readonly interface: string;
  readonly port: number;
  /** Public base address, without a trailing slash. */
  readonly baseUri: string;
  /** Origins that browsers may call from; empty: none; `["*"]`: any. */
  readonly cors: readonly string[];
  /** Addresses and CIDR ranges of proxies whose `X-Forwarded-For` names the caller; fit for express' "trust proxy". */
  readonly trustedProxies: readonly string[];
  readonly maxBodyBytes: number;
  readonly maxHeaderBytes: number;
  readonly requestTimeoutMs: number;
  /** How long a stop waits for requests and deliveries in hand. */
  readonly stopTimeoutMs: number;
}

/** Where metrics are served from, on a port of their own. */
export interface MetricsConfig {
  readonly enabled: boolean;
  readonly interface: string;
  readonly port: number;
}

export interface PostgresqlConfig {
  /** True: run a private server in the data directory; host, port, db, user and password are then not used. */
  readonly embedded: boolean;
  /** Folder of `initdb` and `postgres`, or null to look for them. Embedded only. */
  readonly binDir: string | null;
  /** A host name, an address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly db: string;
  readonly user: string;
  readonly password: string;
  /** Connections of the general pool; intake, settling and listening have their own. */
  readonly poolSize: number;
  /** Calls that may wait for a connection of one pool; one more is refused. */
  readonly poolWaiting: number;
  readonly connectTimeoutMs: number;
  /** A query that has not answered by then loses its connection. */
  readonly queryTimeoutMs: number;
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
  readonly intakeWaitMs: number;
  readonly flushPosts: number;
  readonly flushBytes: number;
  /** Posts per second and token, the burst above it, and how long a post waits for its turn. */
  readonly tokenRate: number;
  readonly tokenBurst: number;
  readonly tokenWaitMs: number;
  readonly unknownTokenMemoryMs: number;
  readonly unknownTokens: number;
  /** Answers about unknown tokens per second and source address before they are slowed. */
  readonly unknownTokenRate: number;
  readonly hooksPerGroup: number;
  readonly registrationsPerMinute: number;
  readonly hookChangesPerMinute: number;
  /** Highest `klatch-hops` a post may carry plus one: at this number it is refused. */
  readonly hops: number;
}

export interface DeliveryConfig {
  /** What the address policy lets through beyond public addresses: CIDR, `loopback`, `private`, host globs. */
  readonly allow: readonly string[];
  readonly inFlight: number;
  readonly perHost: number;
  readonly connectTimeoutMs: number;
  readonly headersTimeoutMs: number;
  readonly answerBytes: number;
  readonly answerTimeMs: number;
  readonly lookupTimeoutMs: number;
  readonly lookupCacheMs: number;
  readonly lookupFailureCacheMs: number;
  readonly lookups: number;
  /** Waits before each repeat; the last one repeats for ever. */
  readonly retryMs: readonly number[];
  /** Longest `Retry-After` that is honoured. */
  readonly retryAfterMaxMs: number;
  /** Failing this long reads as `parked`. */
  readonly parkAfterMs: number;
}

export interface RetentionConfig {
  readonly idempotencyKeysMs: number;
  readonly deliveryLogMs: number;
  readonly deliveryLogRows: number;
  readonly removedHooksMs: number;
}
