import type { Config, DeliveryConfig, HttpConfig, LimitsConfig, PostgresqlConfig } from './config.ts';
import type { Settings } from './schema.ts';

/** What the two words stand for where proxies are listed; the same ranges as in the address policy. */
const NAMED_RANGES = {
  loopback: ['127.0.0.0/8', '::1/128'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
} as const;

/** Gives the settings, whose names are the administrator's, the shape and names of the program. */
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
    metrics: {
      enabled: settings['metrics.enabled'],
      interface: settings['metrics.interface'],
      port: settings['metrics.port'],
    },
    postgresql: buildPostgresql(settings),
    activation: uri === null || authToken === null ? null : { uri, authToken },
    googlePushKeys: (settings['services.google.push.keys'] ?? []).map((each) => ({
      projectId: each['project-id'],
      key: each.key,
    })),
    serverKeys: (settings['modules.security.server-keys'] ?? []).map((pair) => ({
      public: pair.public.path,
      private: pair.private.path,
    })),
    limits: buildLimits(settings),
    delivery: buildDelivery(settings),
    retention: {
      idempotencyKeysMs: settings['retention.idempotency-keys'],
      deliveryLogMs: settings['retention.delivery-log'],
      deliveryLogRows: settings['retention.delivery-log-rows'],
      removedHooksMs: settings['retention.removed-hooks'],
    },
    log: { level: settings['log.level'], format: settings['log.format'] },
  };
}

function buildHttp(settings: Settings): HttpConfig {
  return {
    interface: settings['http.interface'],
    port: settings['http.port'],
    baseUri: settings['http.base-uri'],
    cors: settings['http.cors'],
    trustedProxies: settings['http.trusted-proxies'].flatMap((entry) =>
      entry === 'loopback' || entry === 'private' ? NAMED_RANGES[entry] : [entry],
    ),
    maxBodyBytes: settings['http.max-body'],
    maxHeaderBytes: settings['http.max-headers'],
    requestTimeoutMs: settings['http.request-timeout'],
    stopTimeoutMs: settings['http.stop-timeout'],
  };
}

function buildPostgresql(settings: Settings): PostgresqlConfig {
  return {
    embedded: settings['services.postgresql.embedded'],
    binDir: settings['services.postgresql.bin-dir']?.path ?? null,
    host: settings['services.postgresql.host'],
    port: settings['services.postgresql.port'],
    db: settings['services.postgresql.db'],
    user: settings['services.postgresql.user'],
    password: settings['services.postgresql.password'],
    poolSize: settings['services.postgresql.pool-size'],
    poolWaiting: settings['services.postgresql.pool-waiting'],
    connectTimeoutMs: settings['services.postgresql.connect-timeout'],
    queryTimeoutMs: settings['services.postgresql.query-timeout'],
    flushTimeoutMs: settings['services.postgresql.flush-timeout'],
    lockTimeoutMs: settings['services.postgresql.lock-timeout'],
  };
}

function buildLimits(settings: Settings): LimitsConfig {
  return {
    textCodePoints: settings['limits.text-length'],
    intakePosts: settings['limits.intake-posts'],
    intakeBytes: settings['limits.intake-size'],
    intakeWaitMs: settings['limits.intake-wait'],
    flushPosts: settings['limits.flush-posts'],
    flushBytes: settings['limits.flush-size'],
    tokenRate: settings['limits.token-rate'],
    tokenBurst: settings['limits.token-burst'],
    tokenWaitMs: settings['limits.token-wait'],
    unknownTokenMemoryMs: settings['limits.unknown-token-memory'],
    unknownTokens: settings['limits.unknown-tokens'],
    unknownTokenRate: settings['limits.unknown-token-rate'],
    hooksPerGroup: settings['limits.hooks-per-group'],
    registrationsPerMinute: settings['limits.registrations-per-minute'],
    hookChangesPerMinute: settings['limits.hook-changes-per-minute'],
    hops: settings['limits.hops'],
  };
}

function buildDelivery(settings: Settings): DeliveryConfig {
  return {
    allow: settings['delivery.allow'],
    inFlight: settings['delivery.in-flight'],
    perHost: settings['delivery.per-host'],
    connectTimeoutMs: settings['delivery.connect-timeout'],
    headersTimeoutMs: settings['delivery.headers-timeout'],
    answerBytes: settings['delivery.answer-size'],
    answerTimeMs: settings['delivery.answer-time'],
    lookupTimeoutMs: settings['delivery.lookup-timeout'],
    lookupCacheMs: settings['delivery.lookup-cache'],
    lookupFailureCacheMs: settings['delivery.lookup-failure-cache'],
    lookups: settings['delivery.lookups'],
    retryMs: settings['delivery.retry'],
    retryAfterMaxMs: settings['delivery.retry-after-max'],
    parkAfterMs: settings['delivery.park-after'],
  };
}
