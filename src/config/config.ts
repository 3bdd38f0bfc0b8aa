/**
 * The server's configuration as the program uses it: all values are checked, names contain units, paths are absolute.
 * These functions build it from the settings, which have the names of server.conf; `reference.conf` explains those to
 * administrators. The types follow from the schema. So a key is written in three places: in the schema, in
 * `reference.conf` with its default, and here.
 */
import type { DeepReadonly } from './deep-readonly.ts';
import type { EndpointSetting, Settings } from './schema.ts';
import {
  buildApplePush,
  buildFileStore,
  buildGooglePush,
  buildPostgresql,
  buildPush,
  buildSmtp,
  buildWebPush,
} from './services.ts';

/**
 * The ranges that the keywords `loopback` and `private` stand for in `http.trusted-proxies`. The address policy has the
 * same ranges.
 */
const NAMED_ADDRESS_RANGES = {
  loopback: ['127.0.0.0/8', '::1/128'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
} as const;

export type Config = DeepReadonly<ReturnType<typeof buildConfig>>;

/** Converts the settings, which have the names of server.conf, into the program's own structure. */
export function buildConfig(file: string, settings: Settings) {
  const uri = settings['services.klatch-activation.uri'];
  const authToken = settings['services.klatch-activation.auth-token'];
  return {
    /** Absolute path of the file that was read. */
    file,
    projectName: settings['project-name'],
    /** The server secret. The key that encrypts all sealed data is derived from it. Must never be logged. */
    secret: settings.secret,
    /** The folder with the server's state: lock, control socket, embedded database. */
    dataDir: settings['data-dir'].path,
    /** The public URLs for clients, all with ws://, wss://, tcp:// or tls://. */
    publicEndpoints: settings['public-endpoints'],
    /** The limit of the JavaScript heap; null: V8's own limit. */
    heapBytes: settings['memory.heap'],
    http: buildHttp(settings),
    /** The settings of the browser client. */
    web: { webClientEnabled: settings['web.enabled'] },
    metrics: buildMetrics(settings),
    postgresql: buildPostgresql(settings),
    registration: settings.registration,
    endpoints: settings.endpoints.map(buildEndpoint),
    live: buildLiveConnectionsConfig(settings),
    /** The mail server that sends activation codes; null: there is none. */
    smtp: buildSmtp(settings),
    /** The providers of activation codes, in order of preference. Providers that are not configured are skipped. */
    activationProviders: settings['activation.providers'],
    /** The public URL with which invite links begin, without a trailing slash. */
    inviteBaseUri:
      settings['modules.messaging.groups.invite.base-uri'] ?? `${settings['http.base-uri']}/v1/groups/invites`,
    /** The activation gate (a service that sends activation codes); null: there is none. */
    activation: uri === null || authToken === null ? null : { uri, authToken },
    push: buildPush(settings),
    googlePush: buildGooglePush(settings),
    applePush: buildApplePush(settings),
    /** The keys that identify this server to browsers' push services; null: no pushes to browsers. */
    webPush: buildWebPush(settings),
    files: buildFileStore(settings),
    serverSigningKeys: (settings['modules.security.server-keys'] ?? []).map(buildServerKeyFiles),
    limits: buildLimits(settings),
    delivery: buildDelivery(settings),
    retention: buildRetention(settings),
    log: { level: settings['log.level'], format: settings['log.format'] },
  };
}

/** A listener for clients of the kind ws:// or tcp://; with `tls`, wss:// or tls://. */
export type EndpointConfig = DeepReadonly<ReturnType<typeof buildEndpoint>>;

/**
 * Builds a listener's configuration. Without an `interface`, a listener without TLS accepts only connections from this
 * machine.
 */
export function buildEndpoint({ type, interface: host, port, certificate, key }: EndpointSetting) {
  /** The absolute paths of the PEM files; null: no TLS. */
  const tls = certificate === null || key === null ? null : { certificate: certificate.path, key: key.path };
  return { type, interface: host ?? (tls === null ? '127.0.0.1' : '::'), port, tls };
}

/** The paths of a pair of server keys: PEM files with Ed25519 keys, in PKCS#8 (private) and SPKI (public). */
export type ServerKeyFiles = DeepReadonly<ReturnType<typeof buildServerKeyFiles>>;

function buildServerKeyFiles(pair: NonNullable<Settings['modules.security.server-keys']>[number]) {
  return { public: pair.public.path, private: pair.private.path };
}

export type HttpConfig = DeepReadonly<ReturnType<typeof buildHttp>>;

function buildHttp(settings: Settings) {
  return {
    interface: settings['http.interface'],
    port: settings['http.port'],
    /** The public base URL, without a trailing slash. */
    baseUri: settings['http.base-uri'],
    /** The origins of web pages that may call the server; empty: none; `["*"]`: any. */
    cors: settings['http.cors'],
    /** True if programs can post at the paths of other products, such as `/hooks/<token>`. */
    callerPaths: settings['http.caller-paths'],
    /** The addresses and CIDR ranges of proxies whose `X-Forwarded-For` the server trusts. */
    trustedProxies: settings['http.trusted-proxies'].flatMap((entry) =>
      entry === 'loopback' || entry === 'private' ? NAMED_ADDRESS_RANGES[entry] : [entry],
    ),
    maxBodyBytes: settings['http.max-body-size'],
    /** The largest body of an event of a git host. Applies only if it is greater than `maxBodyBytes`. */
    maxEventBodyBytes: settings['http.max-event-body'],
    maxHeaderBytes: settings['http.max-header-size'],
    requestToResponseTimeoutMs: settings['http.request-timeout'],
    /** How long the stop of the server waits for running requests and deliveries. */
    stopDrainTimeoutMs: settings['http.stop-timeout'],
  };
}

/** The settings of the metrics, which are served on a port of their own. */
export type MetricsConfig = DeepReadonly<ReturnType<typeof buildMetrics>>;

function buildMetrics(settings: Settings) {
  return {
    metricsEnabled: settings['metrics.enabled'],
    interface: settings['metrics.interface'],
    port: settings['metrics.port'],
  };
}

/** The bounds of live connections. */
export type LiveConnectionsConfig = DeepReadonly<ReturnType<typeof buildLiveConnectionsConfig>>;

function buildLiveConnectionsConfig(settings: Settings) {
  return {
    maxFrameBytes: settings['live.max-frame-size'],
    authTimeoutMs: settings['live.auth-timeout'],
    /**
     * The server pings a connection that was silent for this time, and closes it if no answer comes in as much time
     * again.
     */
    heartbeatMs: settings['live.heartbeat'],
    /** The server closes a connection when this many bytes to it are unsent. */
    sendQueueBytes: settings['live.send-queue-size'],
    maxLiveConnections: settings['live.connections'],
    maxConnectionsPerUser: settings['live.connections-per-user'],
    /** The most connections that have not authenticated yet. */
    maxUnauthenticatedConnections: settings['live.unauthenticated-connections'],
    /** The origins of web pages that may connect, in addition to the origin of `http.base-uri`; `["*"]`: any. */
    allowedLiveOrigins: settings['live.origins'],
  };
}

export type LimitsConfig = DeepReadonly<ReturnType<typeof buildLimits>>;

function buildLimits(settings: Settings) {
  return {
    textCodePoints: settings['limits.text-length'],
    intakePosts: settings['limits.intake-posts'],
    intakeBytes: settings['limits.intake-size'],
    /** How long a post may wait in the intake queue before its flush begins. */
    intakeTimeoutMs: settings['limits.intake-timeout'],
    maxFlushPosts: settings['limits.flush-posts'],
    maxFlushBytes: settings['limits.flush-size'],
    /**
     * For each token: posts per second; posts at once after a quiet time; the longest wait of a post beyond both
     * limits. A post that would wait longer is refused.
     */
    postsPerSecondPerToken: settings['limits.token-rate'],
    postBurstPerToken: settings['limits.token-burst'],
    tokenQueueTimeoutMs: settings['limits.token-queue-timeout'],
    unknownTokenTtlMs: settings['limits.unknown-token-ttl'],
    unknownTokenCacheSize: settings['limits.unknown-token-cache'],
    /**
     * The answers per second about unknown tokens to one source (IPv4 address or IPv6 /64). Further answers are
     * delayed.
     */
    unknownTokensPerSecondPerSource: settings['limits.unknown-token-rate'],
    /**
     * The milliseconds, in any second, that the event loop may spend on parsing and checking the input of one source.
     */
    sourceParseMsPerSecond: settings['limits.parse-time'],
    hooksPerGroup: settings['limits.hooks-per-group'],
    hookRegistrationsPerGroupPerMinute: settings['limits.hook-registrations-per-minute'],
    hookChangesPerGroupPerMinute: settings['limits.hook-changes-per-minute'],
    /** A post whose hop count (`klatch-hops`) reaches this number is refused. */
    hopLimit: settings['limits.hops'],
    /** For each session: requests per second, and requests at once after a quiet time. */
    sessionRequestRate: settings['limits.session-rate'],
    sessionRequestBurst: settings['limits.session-burst'],
    sessionsPerUser: settings['limits.sessions-per-user'],
    botsPerUser: settings['limits.bots-per-user'],
    createdOrJoinedConversationsPerUser: settings['limits.groups-per-user'],
    membersPerGroup: settings['limits.members-per-group'],
    invitesPerGroup: settings['limits.invites-per-group'],
    devicesPerUser: settings['limits.devices-per-user'],
    /** The most bytes of one file, of all files of an account, and of all files together. */
    fileBytes: settings['limits.file-size'],
    storagePerUserBytes: settings['limits.storage-per-user'],
    storageTotalBytes: settings['limits.storage-total'],
    /** The most concurrent uploads, in total and of one account. */
    concurrentUploads: settings['limits.concurrent-uploads'],
    concurrentUploadsPerUser: settings['limits.concurrent-uploads-per-user'],
    attachmentsPerMessage: settings['limits.attachments-per-message'],
    /** The most activation codes in an hour to addresses with an account, and separately to addresses without one. */
    codesPerHourPerBudget: settings['limits.codes-per-hour'],
    /** The most activation codes in an hour at the request of one IP address. */
    codesPerSourcePerHour: settings['limits.codes-per-ip'],
    dailyCodesPerAddressAndNetwork: settings['limits.codes-per-address'],
  };
}

export type DeliveryConfig = DeepReadonly<ReturnType<typeof buildDelivery>>;

function buildDelivery(settings: Settings) {
  return {
    /**
     * The targets that the address policy allows besides public addresses: CIDR ranges, `loopback`, `private`, and host
     * names such as `*.corp.example`.
     */
    allow: settings['delivery.allow'],
    maxInFlight: settings['delivery.in-flight'],
    maxInFlightPerHost: settings['delivery.per-host'],
    connectTimeoutMs: settings['delivery.connect-timeout'],
    responseHeadersTimeoutMs: settings['delivery.headers-timeout'],
    maxResponseBytes: settings['delivery.response-size'],
    responseBodyReadMs: settings['delivery.response-timeout'],
    dnsTimeoutMs: settings['delivery.dns-timeout'],
    dnsCacheTtlMs: settings['delivery.dns-cache-ttl'],
    dnsNegativeTtlMs: settings['delivery.dns-negative-ttl'],
    dnsConcurrency: settings['delivery.dns-concurrency'],
    /** The wait before each retry of a delivery. The last wait applies to all further retries. */
    retryDelaysMs: settings['delivery.retry'],
    /** The longest `Retry-After` of a receiver that is honoured. */
    retryAfterMaxMs: settings['delivery.retry-after-max'],
    /** A hook that has failed for this long is parked: its group is notified, and retries continue. */
    parkAfterMs: settings['delivery.park-after'],
  };
}

export type RetentionConfig = DeepReadonly<ReturnType<typeof buildRetention>>;

function buildRetention(settings: Settings) {
  return {
    idempotencyKeysMs: settings['retention.idempotency-keys'],
    deliveryLogMs: settings['retention.delivery-log'],
    deliveryLogRowsPerHook: settings['retention.delivery-log-rows'],
    removedHooksMs: settings['retention.removed-hooks'],
    /** A file that no message has is removed at this age. */
    orphanedFilesMs: settings['retention.orphaned-files'],
    pushLogMs: settings['retention.push-log'],
  };
}
