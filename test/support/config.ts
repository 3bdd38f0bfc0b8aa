import { readAsset } from '../../src/assets.ts';
import { buildConfig, type Config } from '../../src/config/config.ts';
import type { Settings } from '../../src/config/schema.ts';
import { readSettings } from '../../src/config/settings.ts';
import { readTreeFromSources, REFERENCE_NAME } from '../../src/config/tree.ts';
import type { PostgresqlConfig } from '../../src/config/services.ts';
import type { ConnectionTarget } from '../../src/storage/db/connection.ts';

const FILE = '(test)';
/** The configuration keys that have no default. */
const REQUIRED = `
  secret = "a secret for tests that is long enough to be taken"
  http.base-uri = "http://klatch.example"
`;

const tree = readTreeFromSources(
  [
    { name: REFERENCE_NAME, text: readAsset('config/reference.conf') },
    { name: FILE, text: REQUIRED },
  ],
  {},
);
const { settings, missing, problems } = readSettings(tree, FILE);
if (missing.length + problems.length > 0)
  throw new Error(`reference.conf: ${JSON.stringify([...missing, ...problems])}`);

/** The configuration of a server whose file holds only the required keys. */
const defaultConfig: Config = buildConfig(FILE, settings as Settings);

const MINUTE_MS = 60_000;

/**
 * Time-outs for tests in which many sessions write the same rows at the same time: on a slow machine some sessions wait
 * long for a lock.
 */
export const PATIENT = {
  postgresql: { lockTimeoutMs: MINUTE_MS, databaseCallTimeoutMs: MINUTE_MS, flushTimeoutMs: MINUTE_MS },
  http: { requestToResponseTimeoutMs: MINUTE_MS },
} as const;

/** The settings for a database that test/support/database.ts made. */
export const postgresqlConfig: PostgresqlConfig = {
  ...defaultConfig.postgresql,
  // The PostgreSQL server of the tests does not wait for the disk.
  allowFsyncOff: true,
  generalPoolSize: 4,
  // These time-outs are long enough for a machine that stalls for a moment. A test about a time-out sets its own.
  connectTimeoutMs: 20_000,
  databaseCallTimeoutMs: 20_000,
  flushTimeoutMs: 20_000,
  lockTimeoutMs: 1_000,
};

/** The changes of a test to the configuration, section by section. */
export type ConfigChanges = { [Section in keyof Config]?: Partial<Config[Section]> };

/** The defaults of reference.conf for a server on this database, with receivers on loopback allowed. */
export function testConfig(target: ConnectionTarget, dataDir: string, changes: ConfigChanges = {}): Config {
  const { push, http, limits, delivery } = defaultConfig;
  const base: Config = {
    ...defaultConfig,
    file: `${dataDir}/server.conf`,
    projectName: 'Klatch under test',
    dataDir,
    publicEndpoints: ['ws://klatch.example:9080'],
    registration: 'invite',
    endpoints: [],
    push: { ...push, pushDebounceMs: 20 },
    files: { localFilesFolder: `${dataDir}/files`, s3: null },
    postgresql: { ...postgresqlConfig, ...target, db: target.database },
    // The clients of the tests are on loopback themselves: so no proxy is trusted there, unless a test is about
    // proxies.
    http: { ...http, interface: '127.0.0.1', port: 0, trustedProxies: [] },
    // Metrics are off, since several servers run at the same time in tests. Tests about metrics switch them on.
    metrics: { metricsEnabled: false, interface: '127.0.0.1', port: 0 },
    limits: {
      ...limits,
      // A busy machine must not refuse a post because it waited too long. A test about this time-out sets its own.
      intakeTimeoutMs: MINUTE_MS,
      // The parse budget is real time: with the default, the server would refuse requests of a test on a slow machine.
      sourceParseMsPerSecond: MINUTE_MS,
    },
    delivery: { ...delivery, allow: ['loopback'] },
    log: { level: 'error', format: 'json' },
  };
  const changed = Object.entries(changes).map(([section, change]) => {
    const old = base[section as keyof Config];
    const isSection = typeof old === 'object' && old !== null && !Array.isArray(old);
    return [section, isSection ? Object.assign({}, old, change) : change];
  });
  return { ...base, ...Object.fromEntries(changed) } as Config;
}
