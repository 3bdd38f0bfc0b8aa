/**
 * The server's configuration after reading: every value checked, every unit in the name, every path absolute.
 * `reference.conf` explains the keys to administrators; the objects that are built here are their structure inside the
 * program. The types of these objects follow from the schema. So a key is written in three places: in the schema, in
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
 * The ranges of the keywords `loopback` and `private` in the list of proxies; the address policy has the same ranges.
 */
const NAMED_RANGES = {
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
    /** The server secret, from which the key of all sealed data is derived. Never logged. */
    secret: settings.secret,
    /** Folder of the server's state: lock, control socket, embedded database. */
    dataDir: settings['data-dir'].path,
    /** Public addresses for clients: ws://, wss://, tcp:// or tls:// only. */
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
    live: buildLive(settings),
    /** The mail server that sends codes; null: none. */
    smtp: buildSmtp(settings),
    /** The providers that prove addresses, in order of preference; providers that are not configured are skipped. */
    activationProviders: settings['activation.providers'],
    /** Public address that invite links begin with, without a trailing slash. */
    inviteBaseUri:
      settings['modules.messaging.groups.invite.base-uri'] ?? `${settings['http.base-uri']}/v1/groups/invites`,
    /** The activation gate; null: there is none. */
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

/** A listener for clients; with `tls` it is wss:// or tls://. */
export type EndpointConfig = DeepReadonly<ReturnType<typeof buildEndpoint>>;

/** By default a listener without TLS accepts only connections from this machine. */
export function buildEndpoint({ type, interface: host, port, certificate, key }: EndpointSetting) {
  /** Absolute paths of PEM files. */
  const tls = certificate === null || key === null ? null : { certificate: certificate.path, key: key.path };
  return { type, interface: host ?? (tls === null ? '127.0.0.1' : '::'), port, tls };
}

/** PEM files: Ed25519, PKCS#8 and SPKI. */
export type ServerKeyFiles = DeepReadonly<ReturnType<typeof buildServerKeyFiles>>;

function buildServerKeyFiles(pair: NonNullable<Settings['modules.security.server-keys']>[number]) {
  return { public: pair.public.path, private: pair.private.path };
}

export type HttpConfig = DeepReadonly<ReturnType<typeof buildHttp>>;

function buildHttp(settings: Settings) {
  return {
    interface: settings['http.interface'],
    port: settings['http.port'],
    /** Public base address, without a trailing slash. */
    baseUri: settings['http.base-uri'],
    /** Origins that browsers may call from; empty: none; `["*"]`: any. */
    cors: settings['http.cors'],
    /** Whether programs can post by the paths of other products, such as `/hooks/<token>`. */
    callerPaths: settings['http.caller-paths'],
    /** Addresses and CIDR ranges of proxies whose `X-Forwarded-For` names the caller. */
    trustedProxies: settings['http.trusted-proxies'].flatMap((entry) =>
      entry === 'loopback' || entry === 'private' ? NAMED_RANGES[entry] : [entry],
    ),
    maxBodyBytes: settings['http.max-body-size'],
    /** The limit for events of git hosts, if it is greater than `maxBodyBytes`. */
    maxEventBodyBytes: settings['http.max-event-body'],
    maxHeaderBytes: settings['http.max-header-size'],
    requestToResponseTimeoutMs: settings['http.request-timeout'],
    /** How long a stop waits for running requests and deliveries. */
    stopDrainTimeoutMs: settings['http.stop-timeout'],
  };
}

/** The settings of the metrics, which have a port of their own. */
export type MetricsConfig = DeepReadonly<ReturnType<typeof buildMetrics>>;

function buildMetrics(settings: Settings) {
  return {
    metricsEnabled: settings['metrics.enabled'],
    interface: settings['metrics.interface'],
    port: settings['metrics.port'],
  };
}

/** Bounds of live connections. */
export type LiveConfig = DeepReadonly<ReturnType<typeof buildLive>>;

function buildLive(settings: Settings) {
  return {
    maxFrameBytes: settings['live.max-frame-size'],
    authTimeoutMs: settings['live.auth-timeout'],
    /**
     * The server pings a connection that was silent for this time, and closes it if no answer comes in as much time
     * again.
     */
    heartbeatMs: settings['live.heartbeat'],
    /** Unsent bytes of one connection at which the server closes it. */
    sendQueueBytes: settings['live.send-queue-size'],
    maxLiveConnections: settings['live.connections'],
    maxConnectionsPerUser: settings['live.connections-per-user'],
    /** The limit of connections that have not authenticated yet. */
    maxUnauthenticatedConnections: settings['live.unauthenticated-connections'],
    /** Allowed origins of browsers in addition to the origin of `http.base-uri`; `["*"]`: any. */
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
    /** Posts per second and token, the burst above it, and how long a post waits for its turn. */
    postsPerSecondPerToken: settings['limits.token-rate'],
    postBurstPerToken: settings['limits.token-burst'],
    tokenQueueTimeoutMs: settings['limits.token-queue-timeout'],
    unknownTokenTtlMs: settings['limits.unknown-token-ttl'],
    unknownTokenCacheSize: settings['limits.unknown-token-cache'],
    /** The answers per second that one source gets about unknown tokens before further ones are slowed. */
    unknownTokensPerSecondPerSource: settings['limits.unknown-token-rate'],
    /** How long the event loop may parse and check the input of one source, within any second. */
    sourceParseMsPerSecond: settings['limits.parse-time'],
    hooksPerGroup: settings['limits.hooks-per-group'],
    hookRegistrationsPerGroupPerMinute: settings['limits.hook-registrations-per-minute'],
    hookChangesPerGroupPerMinute: settings['limits.hook-changes-per-minute'],
    /** A post whose hop count (`klatch-hops`) reaches this number is refused. */
    hopLimit: settings['limits.hops'],
    /** Requests of one session per second, and the burst above it. */
    sessionRequestRate: settings['limits.session-rate'],
    sessionRequestBurst: settings['limits.session-burst'],
    sessionsPerUser: settings['limits.sessions-per-user'],
    botsPerUser: settings['limits.bots-per-user'],
    createdOrJoinedConversationsPerUser: settings['limits.groups-per-user'],
    membersPerGroup: settings['limits.members-per-group'],
    invitesPerGroup: settings['limits.invites-per-group'],
    devicesPerUser: settings['limits.devices-per-user'],
    /** The limits of one file, of all files of an account, and of all files. */
    fileBytes: settings['limits.file-size'],
    storagePerUserBytes: settings['limits.storage-per-user'],
    storageTotalBytes: settings['limits.storage-total'],
    /** The limits of concurrent uploads, in total and of one account. */
    concurrentUploads: settings['limits.concurrent-uploads'],
    concurrentUploadsPerUser: settings['limits.concurrent-uploads-per-user'],
    /** The limit of files of one message. */
    attachmentsPerMessage: settings['limits.attachments-per-message'],
    /** Codes an hour to addresses with an account, and as many to addresses without one. */
    codesPerHourPerBudget: settings['limits.codes-per-hour'],
    /** Codes an hour at the request of one source address. */
    codesPerSourcePerHour: settings['limits.codes-per-ip'],
    dailyCodesPerAddressAndNetwork: settings['limits.codes-per-address'],
  };
}

export type DeliveryConfig = DeepReadonly<ReturnType<typeof buildDelivery>>;

function buildDelivery(settings: Settings) {
  return {
    /** The targets that the address policy allows besides public addresses: CIDR, `loopback`, `private`, host globs. */
    allow: settings['delivery.allow'],
    maxInFlight: settings['delivery.in-flight'],
    maxInFlightPerHost: settings['delivery.per-host'],
    connectTimeoutMs: settings['delivery.connect-timeout'],
    responseHeadersTimeoutMs: settings['delivery.headers-timeout'],
    responseBytes: settings['delivery.response-size'],
    responseBodyReadMs: settings['delivery.response-timeout'],
    dnsTimeoutMs: settings['delivery.dns-timeout'],
    dnsCacheTtlMs: settings['delivery.dns-cache-ttl'],
    dnsNegativeTtlMs: settings['delivery.dns-negative-ttl'],
    dnsConcurrency: settings['delivery.dns-concurrency'],
    /** The waits before each retry; the last one applies to all further retries. */
    retryDelaysMs: settings['delivery.retry'],
    /** Longest `Retry-After` that is honoured. */
    retryAfterMaxMs: settings['delivery.retry-after-max'],
    /** A hook that has failed for this long counts as `parked`. */
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
    /** The age at which a file that belongs to no message is removed. */
    orphanedFilesMs: settings['retention.orphaned-files'],
    pushLogMs: settings['retention.push-log'],
  };
}
