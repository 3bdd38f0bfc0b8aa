import { join } from 'node:path';
import type {
  ApplePushConfig,
  Config,
  DeliveryConfig,
  EndpointConfig,
  FileStoreConfig,
  GooglePushConfig,
  HttpConfig,
  LimitsConfig,
  LiveConfig,
  DatabaseTlsConfig,
  PostgresqlConfig,
  PushConfig,
  S3Config,
  SmtpConfig,
  WebPushConfig,
} from './config.ts';
import type { EndpointSetting, Settings } from './schema.ts';

/** The ranges of the keywords `loopback` and `private` in the list of proxies; the same as in the address policy. */
const NAMED_RANGES = {
  loopback: ['127.0.0.0/8', '::1/128'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
} as const;

/** Converts the settings, which have the names of server.conf, into the program's own structure. */
export function buildConfig(file: string, settings: Settings): Config {
  const uri = settings['services.klatch-activation.uri'];
  const authToken = settings['services.klatch-activation.auth-token'];
  return {
    file,
    projectName: settings['project-name'],
    secret: settings.secret,
    dataDir: settings['data-dir'].path,
    publicEndpoints: settings['public-endpoints'],
    heapBytes: settings['memory.heap'],
    http: buildHttp(settings),
    web: { webClientEnabled: settings['web.enabled'] },
    metrics: {
      metricsEnabled: settings['metrics.enabled'],
      interface: settings['metrics.interface'],
      port: settings['metrics.port'],
    },
    postgresql: buildPostgresql(settings),
    registration: settings.registration,
    endpoints: settings.endpoints.map(buildEndpoint),
    live: buildLive(settings),
    smtp: buildSmtp(settings),
    activationProviders: settings['activation.providers'],
    inviteBaseUri:
      settings['modules.messaging.groups.invite.base-uri'] ?? `${settings['http.base-uri']}/v1/groups/invites`,
    activation: uri === null || authToken === null ? null : { uri, authToken },
    push: buildPush(settings),
    googlePush: buildGooglePush(settings),
    applePush: buildApplePush(settings),
    webPush: buildWebPush(settings),
    files: buildFileStore(settings),
    serverSigningKeys: (settings['modules.security.server-keys'] ?? []).map((pair) => ({
      public: pair.public.path,
      private: pair.private.path,
    })),
    limits: buildLimits(settings),
    delivery: buildDelivery(settings),
    retention: {
      idempotencyKeysMs: settings['retention.idempotency-keys'],
      deliveryLogMs: settings['retention.delivery-log'],
      deliveryLogRowsPerHook: settings['retention.delivery-log-rows'],
      removedHooksMs: settings['retention.removed-hooks'],
      orphanedFilesMs: settings['retention.orphaned-files'],
      pushLogMs: settings['retention.push-log'],
    },
    log: { level: settings['log.level'], format: settings['log.format'] },
  };
}

/** By default a listener without TLS accepts only connections from this machine. */
export function buildEndpoint({ type, interface: host, port, certificate, key }: EndpointSetting): EndpointConfig {
  const tls = certificate === null || key === null ? null : { certificate: certificate.path, key: key.path };
  return { type, interface: host ?? (tls === null ? '127.0.0.1' : '::'), port, tls };
}

function buildLive(settings: Settings): LiveConfig {
  return {
    maxFrameBytes: settings['live.max-frame-size'],
    authTimeoutMs: settings['live.auth-timeout'],
    heartbeatMs: settings['live.heartbeat'],
    sendQueueBytes: settings['live.send-queue-size'],
    maxLiveConnections: settings['live.connections'],
    maxConnectionsPerUser: settings['live.connections-per-user'],
    maxUnauthenticatedConnections: settings['live.unauthenticated-connections'],
    allowedLiveOrigins: settings['live.origins'],
  };
}

function buildSmtp(settings: Settings): SmtpConfig | null {
  const host = settings['services.smtp.host'];
  const from = settings['services.smtp.from'];
  if (host === null || from === null) return null;
  return {
    host,
    port: settings['services.smtp.port'],
    tls: settings['services.smtp.tls'],
    user: settings['services.smtp.user'],
    password: settings['services.smtp.password'],
    from,
    emailTemplatePath: settings['services.smtp.template']?.path ?? null,
  };
}

function buildPush(settings: Settings): PushConfig {
  return {
    content: settings['push.content'],
    pushDebounceMs: settings['push.debounce'],
    maxInFlightPerVendor: settings['push.in-flight'],
    timeoutMs: settings['push.timeout'],
    pushRetryDelaysMs: settings['push.retry'],
    pushExpiresAfterMs: settings['push.ttl'],
  };
}

function buildGooglePush(settings: Settings): GooglePushConfig {
  const keys = settings['services.google.push.keys'] ?? [];
  return {
    keys: keys.map((each) => ({ projectId: each['project-id'], key: each.key.path })),
    googlePushEndpoint: settings['services.google.push.endpoint'],
    tokenEndpoint: settings['services.google.push.token-endpoint'],
  };
}

function buildApplePush(settings: Settings): ApplePushConfig {
  const keys = settings['services.apple.push.keys'] ?? [];
  return {
    keys: keys.map((each) => ({
      keyId: each['key-id'],
      teamId: each['team-id'],
      path: each.path.path,
      bundleId: each['bundle-id'],
      sandbox: each.sandbox ?? false,
    })),
    applePushEndpoint: settings['services.apple.push.endpoint'],
    extraAppleCaFile: settings['services.apple.push.ca-file']?.path ?? null,
  };
}

function buildWebPush(settings: Settings): WebPushConfig | null {
  const publicKey = settings['services.web-push.public'];
  const privateKey = settings['services.web-push.private'];
  const vapidSubject = settings['services.web-push.subject'];
  if (publicKey === null || privateKey === null || vapidSubject === null) return null;
  return { public: publicKey, private: privateKey, vapidSubject };
}

function buildFileStore(settings: Settings): FileStoreConfig {
  const localFilesFolder = settings['services.file-storage.location']?.path ?? join(settings['data-dir'].path, 'files');
  const bucket = settings['services.aws.s3.default-bucket'];
  const accessKey = settings['services.aws.s3.access-key'];
  const secretKey = settings['services.aws.s3.secret-key'];
  if (bucket === null || accessKey === null || secretKey === null) return { localFilesFolder, s3: null };
  const s3: S3Config = {
    bucket,
    accessKey,
    secretKey,
    s3Endpoint: settings['services.aws.s3.endpoint'],
    region: settings['services.aws.s3.region'],
    pathStyle: settings['services.aws.s3.path-style-access'],
    downloads: settings['services.aws.s3.downloads'],
  };
  return { localFilesFolder, s3 };
}

function buildHttp(settings: Settings): HttpConfig {
  return {
    interface: settings['http.interface'],
    port: settings['http.port'],
    baseUri: settings['http.base-uri'],
    cors: settings['http.cors'],
    callerPaths: settings['http.caller-paths'],
    trustedProxies: settings['http.trusted-proxies'].flatMap((entry) =>
      entry === 'loopback' || entry === 'private' ? NAMED_RANGES[entry] : [entry],
    ),
    maxBodyBytes: settings['http.max-body-size'],
    maxEventBodyBytes: settings['http.max-event-body'],
    maxHeaderBytes: settings['http.max-header-size'],
    requestToResponseTimeoutMs: settings['http.request-timeout'],
    stopDrainTimeoutMs: settings['http.stop-timeout'],
  };
}

function buildPostgresql(settings: Settings): PostgresqlConfig {
  const [first, ...others] = settings['services.postgresql.host'].map(({ host, port }) => {
    return { host, port: port ?? settings['services.postgresql.port'] };
  });
  return {
    embedded: settings['services.postgresql.embedded'],
    binDir: settings['services.postgresql.bin-dir']?.path ?? null,
    ...first!,
    otherHosts: others,
    db: settings['services.postgresql.db'],
    user: settings['services.postgresql.user'],
    password: settings['services.postgresql.password'],
    tls: buildDatabaseTls(settings),
    allowFsyncOff: settings['services.postgresql.unsafe'],
    generalPoolSize: settings['services.postgresql.pool-size'],
    poolQueue: settings['services.postgresql.pool-queue'],
    connectTimeoutMs: settings['services.postgresql.connect-timeout'],
    databaseCallTimeoutMs: settings['services.postgresql.query-timeout'],
    flushTimeoutMs: settings['services.postgresql.flush-timeout'],
    lockTimeoutMs: settings['services.postgresql.lock-timeout'],
  };
}

function buildDatabaseTls(settings: Settings): DatabaseTlsConfig | null {
  const mode = settings['services.postgresql.tls'];
  if (mode === 'disable') return null;
  return {
    mode,
    databaseCaFile: settings['services.postgresql.ca-file']?.path ?? null,
    certificate: settings['services.postgresql.certificate']?.path ?? null,
    key: settings['services.postgresql.key']?.path ?? null,
  };
}

function buildLimits(settings: Settings): LimitsConfig {
  return {
    textCodePoints: settings['limits.text-length'],
    intakePosts: settings['limits.intake-posts'],
    intakeBytes: settings['limits.intake-size'],
    intakeTimeoutMs: settings['limits.intake-timeout'],
    maxFlushPosts: settings['limits.flush-posts'],
    maxFlushBytes: settings['limits.flush-size'],
    postsPerSecondPerToken: settings['limits.token-rate'],
    postBurstPerToken: settings['limits.token-burst'],
    tokenQueueTimeoutMs: settings['limits.token-queue-timeout'],
    unknownTokenTtlMs: settings['limits.unknown-token-ttl'],
    unknownTokenCacheSize: settings['limits.unknown-token-cache'],
    unknownTokensPerSecondPerSource: settings['limits.unknown-token-rate'],
    sourceParseMsPerSecond: settings['limits.parse-time'],
    hooksPerGroup: settings['limits.hooks-per-group'],
    hookRegistrationsPerGroupPerMinute: settings['limits.hook-registrations-per-minute'],
    hookChangesPerGroupPerMinute: settings['limits.hook-changes-per-minute'],
    hopLimit: settings['limits.hops'],
    sessionRequestRate: settings['limits.session-rate'],
    sessionRequestBurst: settings['limits.session-burst'],
    sessionsPerUser: settings['limits.sessions-per-user'],
    botsPerUser: settings['limits.bots-per-user'],
    createdOrJoinedConversationsPerUser: settings['limits.groups-per-user'],
    membersPerGroup: settings['limits.members-per-group'],
    invitesPerGroup: settings['limits.invites-per-group'],
    devicesPerUser: settings['limits.devices-per-user'],
    fileBytes: settings['limits.file-size'],
    storagePerUserBytes: settings['limits.storage-per-user'],
    storageTotalBytes: settings['limits.storage-total'],
    concurrentUploads: settings['limits.concurrent-uploads'],
    concurrentUploadsPerUser: settings['limits.concurrent-uploads-per-user'],
    attachmentsPerMessage: settings['limits.attachments-per-message'],
    codesPerHourPerBudget: settings['limits.codes-per-hour'],
    codesPerSourcePerHour: settings['limits.codes-per-ip'],
    dailyCodesPerAddressAndNetwork: settings['limits.codes-per-address'],
  };
}

function buildDelivery(settings: Settings): DeliveryConfig {
  return {
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
    retryDelaysMs: settings['delivery.retry'],
    retryAfterMaxMs: settings['delivery.retry-after-max'],
    parkAfterMs: settings['delivery.park-after'],
  };
}
