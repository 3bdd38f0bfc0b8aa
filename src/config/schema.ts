import { allowance, endpoint, host, httpAddress, origin, proxy } from './address.ts';
import type { Config, LogLevel } from './config.ts';
import { list, record } from './kind.ts';
import type { Entry, Kind } from './kind.ts';
import { BYTES, MS, choice, duration, flag, integer, location, password, port, serverSecret, size } from './scalars.ts';
import { text } from './scalars.ts';

const preset = <T>(kind: Kind<T>): Entry<T, 'preset'> => ({ kind, presence: 'preset' });
const required = <T>(kind: Kind<T>): Entry<T, 'required'> => ({ kind, presence: 'required' });
const optional = <T>(kind: Kind<T>): Entry<T, 'optional'> => ({ kind, presence: 'optional' });

/** Fewest characters of `secret`. */
export const SECRET_CHARACTERS = 32;

const identifier = (what: string): Kind<string> => text(`the ${what} (1 to 63 characters)`, { min: 1, max: 63 });

const pushKey = record<{ 'project-id': string; key: string }>('an object with project-id and key', {
  'project-id': text('a project id (1 to 100 letters, digits, "-" and ".")', {
    min: 1,
    max: 100,
    pattern: /^[A-Za-z0-9.:-]+$/,
  }),
  key: text('a key on one line', { min: 1, max: 10_000, hidden: true }),
});

const serverKey = record('an object with public and private', {
  public: location('the path of a PEM file'),
  private: location('the path of a PEM file'),
});

const corsRule = (origins: readonly string[]): string | null =>
  origins.includes('*') && origins.length > 1 ? '"*" is any origin already: list it alone, or not at all' : null;

/**
 * Every key of the configuration: what it may hold. Defaults stand in reference.conf only, and the names here and
 * there are held together by a test. Bounds refuse what cannot work or is a slip (a unit forgotten, a zero too many).
 */
export const SCHEMA = {
  secret: required(serverSecret(SECRET_CHARACTERS)),
  'project-name': preset(text('a name of 1 to 80 characters', { min: 1, max: 80 })),
  'data-dir': preset(location('the path of a folder')),
  'public-endpoints': preset(list('a list of addresses', endpoint(), { max: 32 })),

  'memory.heap': optional(size({ min: 64 * BYTES.mib, max: 64 * BYTES.gib })),

  'http.interface': preset(host('an address or host name to listen on', { allowFolder: false })),
  'http.port': preset(port(0)),
  'http.base-uri': required(httpAddress('an absolute http:// or https:// address without query and fragment')),
  'http.cors': preset(list('a list of origins', origin(), { max: 1000, rule: corsRule })),
  'http.trusted-proxies': preset(list('a list of addresses', proxy(), { max: 1000 })),
  'http.max-body': preset(size({ min: BYTES.kib, max: 64 * BYTES.mib })),
  'http.max-headers': preset(size({ min: 4 * BYTES.kib, max: BYTES.mib })),
  'http.request-timeout': preset(duration({ min: MS.second, max: 10 * MS.minute })),
  'http.stop-timeout': preset(duration({ min: 0, max: 10 * MS.minute })),

  'metrics.enabled': preset(flag()),
  'metrics.interface': preset(host('an address or host name to listen on', { allowFolder: false })),
  'metrics.port': preset(port(0)),

  'services.postgresql.embedded': preset(flag()),
  'services.postgresql.bin-dir': optional(location('the path of a folder')),
  'services.postgresql.host': preset(
    host('a host name, an address or the folder of a Unix socket', { allowFolder: true }),
  ),
  'services.postgresql.port': preset(port(1)),
  'services.postgresql.db': preset(identifier('name of a database')),
  'services.postgresql.user': preset(identifier('name of a database user')),
  'services.postgresql.password': preset(password('a password')),
  'services.postgresql.pool-size': preset(integer({ min: 1, max: 500 })),
  'services.postgresql.pool-waiting': preset(integer({ min: 0, max: 1_000_000 })),
  'services.postgresql.connect-timeout': preset(duration({ min: 100, max: MS.minute })),
  'services.postgresql.query-timeout': preset(duration({ min: 100, max: 10 * MS.minute })),
  'services.postgresql.flush-timeout': preset(duration({ min: 100, max: MS.minute })),
  'services.postgresql.lock-timeout': preset(duration({ min: 10, max: MS.minute })),

  'services.klatch-activation.uri': optional(
    httpAddress('an absolute http:// or https:// address without query and fragment'),
  ),
  'services.klatch-activation.auth-token': optional(text('a token on one line', { min: 1, max: 4096, hidden: true })),
  'services.google.push.keys': optional(list('a list of objects', pushKey, { max: 100 })),
  'modules.security.server-keys': optional(list('a list of objects', serverKey, { max: 16 })),

  'limits.text-length': preset(integer({ min: 1, max: 200_000 })),
  'limits.intake-posts': preset(integer({ min: 1, max: 1_000_000 })),
  'limits.intake-size': preset(size({ min: BYTES.mib, max: 4 * BYTES.gib })),
  'limits.intake-wait': preset(duration({ min: 100, max: MS.minute })),
  'limits.flush-posts': preset(integer({ min: 1, max: 5000 })),
  'limits.flush-size': preset(size({ min: 64 * BYTES.kib, max: 64 * BYTES.mib })),
  'limits.token-rate': preset(integer({ min: 1, max: 100_000 })),
  'limits.token-burst': preset(integer({ min: 1, max: 1_000_000 })),
  'limits.token-wait': preset(duration({ min: 0, max: MS.minute })),
  'limits.unknown-token-memory': preset(duration({ min: 0, max: MS.hour })),
  'limits.unknown-tokens': preset(integer({ min: 0, max: 1_000_000 })),
  'limits.unknown-token-rate': preset(integer({ min: 1, max: 100_000 })),
  'limits.hooks-per-group': preset(integer({ min: 1, max: 10_000 })),
  'limits.registrations-per-minute': preset(integer({ min: 1, max: 10_000 })),
  'limits.hook-changes-per-minute': preset(integer({ min: 1, max: 10_000 })),
  'limits.hops': preset(integer({ min: 1, max: 100 })),

  'delivery.allow': preset(list('a list of ranges and hosts', allowance(), { max: 1000 })),
  'delivery.in-flight': preset(integer({ min: 1, max: 10_000 })),
  'delivery.per-host': preset(integer({ min: 1, max: 10_000 })),
  'delivery.connect-timeout': preset(duration({ min: 100, max: MS.minute })),
  'delivery.headers-timeout': preset(duration({ min: 100, max: 5 * MS.minute })),
  'delivery.answer-size': preset(size({ min: 0, max: 16 * BYTES.mib })),
  'delivery.answer-time': preset(duration({ min: 0, max: MS.minute })),
  'delivery.lookups': preset(integer({ min: 1, max: 8 })),
  'delivery.lookup-timeout': preset(duration({ min: 100, max: MS.minute })),
  'delivery.lookup-cache': preset(duration({ min: 0, max: MS.hour })),
  'delivery.lookup-failure-cache': preset(duration({ min: 0, max: MS.hour })),
  'delivery.retry': preset(list('a list of durations', duration({ min: 10, max: 7 * MS.day }), { min: 1, max: 32 })),
  'delivery.retry-after-max': preset(duration({ min: 0, max: 7 * MS.day })),
  'delivery.park-after': preset(duration({ min: MS.second, max: 365 * MS.day })),

  'retention.delivery-log': preset(duration({ min: MS.hour, max: 365 * MS.day })),
  'retention.delivery-log-rows': preset(integer({ min: 1, max: 1_000_000 })),
  'retention.idempotency-keys': preset(duration({ min: MS.minute, max: 365 * MS.day })),
  'retention.removed-hooks': preset(duration({ min: 0, max: 3650 * MS.day })),

  'log.level': preset(choice<LogLevel>(['debug', 'info', 'warn', 'error'])),
  'log.format': preset(choice<Config['log']['format']>(['auto', 'json', 'text'])),
} as const;

type Schema = typeof SCHEMA;

/** A key of the configuration such as `http.port`. */
export type SettingKey = keyof Schema;

/** The value of every key; null where an optional one is not set. */
export type Settings = {
  readonly [K in SettingKey]: Schema[K] extends Entry<infer T, infer P>
    ? T | (P extends 'optional' ? null : never)
    : never;
};

/** The table's rows in order. */
export function settingEntries(): readonly (readonly [SettingKey, Entry<unknown>])[] {
  return Object.entries(SCHEMA) as unknown as readonly (readonly [SettingKey, Entry<unknown>])[];
}
