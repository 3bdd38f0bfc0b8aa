import type { Config } from '../../src/config/config.ts';
import type { ConnectionTarget } from '../../src/storage/db/connection.ts';
import { postgresqlConfig } from './database.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * For tests in which many sessions write the same rows at once: on a slow machine some wait for a lock longer than
 * usual.
 */
export const PATIENT = {
  postgresql: { lockTimeoutMs: MINUTE_MS, databaseCallTimeoutMs: MINUTE_MS, flushTimeoutMs: MINUTE_MS },
  http: { requestToResponseTimeoutMs: MINUTE_MS },
} as const;

/** The changes of a test to the configuration, section by section. */
export type ConfigChanges = { [Section in keyof Config]?: Partial<Config[Section]> };

/** The contract's bounds, on a database of the test's own, with receivers on loopback allowed. */
export function testConfig(target: ConnectionTarget, dataDir: string, changes: ConfigChanges = {}): Config {
  const base: Config = {
    file: `${dataDir}/server.conf`,
    projectName: 'Klatch under test',
    secret: 'a secret for tests that is long enough to be taken',
    dataDir,
    publicEndpoints: ['ws://klatch.example:9080'],
    registration: 'invite',
    endpoints: [],
    live: {
      maxFrameBytes: 1024 * 1024,
      authTimeoutMs: 10_000,
      heartbeatMs: 25_000,
      sendQueueBytes: 4 * 1024 * 1024,
      maxLiveConnections: 20_000,
      maxConnectionsPerUser: 50,
      maxUnauthenticatedConnections: 2_000,
      allowedLiveOrigins: [],
    },
    activation: null,
    smtp: null,
    activationProviders: ['gate', 'email'],
    inviteBaseUri: 'http://klatch.example/v1/groups/invites',
    push: {
      content: 'full',
      pushDebounceMs: 20,
      maxInFlightPerVendor: 100,
      timeoutMs: 10_000,
      pushRetryDelaysMs: [5_000, 30_000, 2 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS],
      pushExpiresAfterMs: DAY_MS,
    },
    googlePush: {
      keys: [],
      googlePushEndpoint: 'https://fcm.googleapis.com',
      tokenEndpoint: 'https://oauth2.googleapis.com/token',
    },
    applePush: { keys: [], applePushEndpoint: null, extraAppleCaFile: null },
    webPush: null,
    files: { localFilesFolder: `${dataDir}/files`, s3: null },
    serverSigningKeys: [],
    postgresql: { ...postgresqlConfig, ...target, db: target.database },
    heapBytes: null,
    http: {
      interface: '127.0.0.1',
      port: 0,
      baseUri: 'http://klatch.example',
      cors: [],
      callerPaths: true,
      trustedProxies: [],
      maxBodyBytes: 1024 * 1024,
      maxEventBodyBytes: 4 * 1024 * 1024,
      maxHeaderBytes: 16 * 1024,
      requestToResponseTimeoutMs: 10_000,
      stopDrainTimeoutMs: 20_000,
    },
    web: { webClientEnabled: true },
    // Several servers run at once in tests; tests about metrics switch them on.
    metrics: { metricsEnabled: false, interface: '127.0.0.1', port: 0 },
    limits: {
      textCodePoints: 40_000,
      intakePosts: 5_000,
      intakeBytes: 64 * 1024 * 1024,
      // A busy machine must not refuse a post; a test about the timeout sets its own.
      intakeTimeoutMs: MINUTE_MS,
      maxFlushPosts: 500,
      maxFlushBytes: 4 * 1024 * 1024,
      postsPerSecondPerToken: 100,
      postBurstPerToken: 1_000,
      tokenQueueTimeoutMs: 5_000,
      unknownTokenTtlMs: 5_000,
      unknownTokenCacheSize: 10_000,
      unknownTokensPerSecondPerSource: 20,
      // The budget is real time: on a slow machine the server would refuse the requests of a test.
      sourceParseMsPerSecond: MINUTE_MS,
      hooksPerGroup: 100,
      hookRegistrationsPerGroupPerMinute: 10,
      hookChangesPerGroupPerMinute: 60,
      hopLimit: 3,
      sessionRequestRate: 50,
      sessionRequestBurst: 500,
      sessionsPerUser: 100,
      botsPerUser: 20,
      createdOrJoinedConversationsPerUser: 1_000,
      membersPerGroup: 10_000,
      invitesPerGroup: 100,
      devicesPerUser: 20,
      fileBytes: 100 * 1024 * 1024,
      storagePerUserBytes: 10 * 1024 ** 3,
      storageTotalBytes: 100 * 1024 ** 3,
      concurrentUploads: 200,
      concurrentUploadsPerUser: 8,
      attachmentsPerMessage: 10,
      codesPerHourPerBudget: 200,
      codesPerSourcePerHour: 20,
      dailyCodesPerAddressAndNetwork: 5,
    },
    delivery: {
      allow: ['loopback'],
      maxInFlight: 256,
      maxInFlightPerHost: 16,
      connectTimeoutMs: 5_000,
      responseHeadersTimeoutMs: 15_000,
      responseBytes: 64 * 1024,
      responseBodyReadMs: 1_000,
      dnsTimeoutMs: 5_000,
      dnsCacheTtlMs: 30_000,
      dnsNegativeTtlMs: 5_000,
      dnsConcurrency: 8,
      retryDelaysMs: [5_000, 30_000, 2 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS],
      retryAfterMaxMs: HOUR_MS,
      parkAfterMs: 3 * DAY_MS,
    },
    retention: {
      idempotencyKeysMs: DAY_MS,
      deliveryLogMs: 7 * DAY_MS,
      deliveryLogRowsPerHook: 10_000,
      removedHooksMs: 30 * DAY_MS,
      orphanedFilesMs: DAY_MS,
      pushLogMs: 7 * DAY_MS,
    },
    log: { level: 'error', format: 'json' },
  };
  const changed = Object.entries(changes).map(([section, change]) => {
    const old = base[section as keyof Config];
    const isSection = typeof old === 'object' && old !== null && !Array.isArray(old);
    return [section, isSection ? Object.assign({}, old, change) : change];
  });
  return { ...base, ...Object.fromEntries(changed) } as Config;
}
