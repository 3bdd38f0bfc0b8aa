import {
  allowedDeliveryTarget,
  clientEndpointUrl,
  connectHostValueType,
  databaseServer,
  absoluteHttpUrlValueType,
  listenHost,
  browserOrigin,
  trustedProxy,
} from './address.ts';
import { activationProviderNames } from '../model/proof-address.ts';
import { liveTransports, type LiveTransport } from '../model/transport.ts';
import { list, oneOrList, recordValueType } from './value-types.ts';
import type { KeySpec, ValueType } from './value-types.ts';
import {
  BYTES,
  MS,
  choice,
  duration,
  flag,
  integer,
  location,
  password,
  port,
  unguessableServerSecret,
  serviceAccountPathOrJson,
  size,
} from './scalars.ts';
import { text } from './scalars.ts';
import type { LocatedPath } from './scalars.ts';

const defaulted = <T>(kind: ValueType<T>): KeySpec<T, 'defaulted'> => ({ kind, presence: 'defaulted' });
const required = <T>(kind: ValueType<T>): KeySpec<T, 'required'> => ({ kind, presence: 'required' });
const optional = <T>(kind: ValueType<T>): KeySpec<T, 'optional'> => ({ kind, presence: 'optional' });

/**
 * The most database servers that may be configured. While none is the primary, the server tries each of them in turn.
 */
const MAX_DATABASE_SERVERS = 8;
/** The fewest characters that `secret` may have. */
const MIN_SECRET_CHARACTERS = 32;

const postgresqlIdentifier = (what: string): ValueType<string> =>
  text(`the ${what} (1 to 63 characters)`, { minCharacters: 1, maxCharacters: 63 });

/** An entry of `services.google.push.keys`, as it is read. `key.path` may be the JSON itself. */
interface GooglePushSetting {
  readonly 'project-id': string;
  readonly key: LocatedPath;
}

const googlePushKey = recordValueType<GooglePushSetting>('an object with project-id and key', {
  'project-id': text('a project id (1 to 100 letters, digits, "-" and ".")', {
    minCharacters: 1,
    maxCharacters: 100,
    pattern: /^[A-Za-z0-9.:-]+$/,
  }),
  key: serviceAccountPathOrJson('the path of a service account file, or its JSON', 65_536),
});

/** An entry of `services.apple.push.keys`, as it is read. */
interface ApplePushSetting {
  readonly 'key-id': string;
  readonly 'team-id': string;
  readonly path: LocatedPath;
  readonly 'bundle-id': string;
  readonly sandbox: boolean | null;
}

const appleId = (what: string): ValueType<string> =>
  text(`${what} (10 letters and digits)`, { minCharacters: 10, maxCharacters: 10, pattern: /^[A-Za-z0-9]+$/ });

const applePushKey = recordValueType<ApplePushSetting>(
  'an object with key-id, team-id, path, bundle-id and, if wanted, sandbox',
  {
    'key-id': appleId('a key id'),
    'team-id': appleId('a team id'),
    path: location('the path of a .p8 file', { isKeyFile: true }),
    'bundle-id': text('a bundle id such as org.example.chat', {
      minCharacters: 1,
      maxCharacters: 155,
      pattern: /^[A-Za-z0-9.-]+$/,
    }),
    sandbox: flag(),
  },
  ['sandbox'],
);

const webPushKey = (what: string, bytes: number, hidden: boolean): ValueType<string> => {
  const characters = Math.ceil((bytes * 4) / 3);
  const pattern = /^[A-Za-z0-9_-]+$/;
  return text(`${what} in base64url (${characters} characters)`, {
    minCharacters: characters,
    maxCharacters: characters,
    pattern,
    hidden,
  });
};

const serverKeyPair = recordValueType('an object with public and private', {
  public: location('the path of a PEM file', { isKeyFile: true }),
  private: location('the path of a PEM file', { isKeyFile: true }),
});

/** An entry of `endpoints`, as it is read: a listener for clients. */
export interface EndpointSetting {
  readonly type: LiveTransport;
  readonly interface: string | null;
  readonly port: number;
  readonly certificate: LocatedPath | null;
  readonly key: LocatedPath | null;
}

const endpointSetting = recordValueType<EndpointSetting>(
  'an object with type, port and, if wanted, interface, certificate and key',
  {
    type: choice(liveTransports),
    interface: listenHost(),
    port: port(0),
    certificate: location('the path of a PEM file', { isKeyFile: true }),
    key: location('the path of a PEM file', { isKeyFile: true }),
  },
  ['interface', 'certificate', 'key'],
);

const tlsRule = (endpoints: readonly EndpointSetting[]): string | null =>
  endpoints.some(({ certificate, key }) => (certificate === null) !== (key === null))
    ? 'TLS needs both certificate and key: one endpoint has only one of them'
    : null;

const originsRule = (origins: readonly string[]): string | null =>
  origins.includes('*') && origins.length > 1 ? '"*" is any origin already: list it alone, or not at all' : null;

/**
 * Every key of the configuration, with the type of its value. Defaults are only in reference.conf; a test checks that
 * both have the same keys. Bounds exclude values that cannot work or are probably slips (a forgotten unit, a zero too
 * many).
 */
export const CONFIG_SCHEMA = {
  secret: required(unguessableServerSecret(MIN_SECRET_CHARACTERS)),
  'project-name': defaulted(
    text('a name of 1 to 80 characters', { minCharacters: 1, maxCharacters: 80, quotableInMessages: true }),
  ),
  'data-dir': defaulted(location('the path of a folder')),
  'public-endpoints': defaulted(list('a list of addresses', clientEndpointUrl(), { maxItems: 32 })),
  registration: defaulted(choice(['open', 'invite', 'closed'])),
  endpoints: defaulted(list('a list of objects', endpointSetting, { maxItems: 16, rule: tlsRule })),

  'live.max-frame-size': defaulted(size({ min: 64 * BYTES.kib, max: 16 * BYTES.mib })),
  'live.auth-timeout': defaulted(duration({ min: MS.second, max: 5 * MS.minute })),
  'live.heartbeat': defaulted(duration({ min: MS.second, max: 10 * MS.minute })),
  'live.send-queue-size': defaulted(size({ min: 64 * BYTES.kib, max: 256 * BYTES.mib })),
  'live.connections': defaulted(integer({ min: 1, max: 1_000_000 })),
  'live.connections-per-user': defaulted(integer({ min: 1, max: 100_000 })),
  'live.unauthenticated-connections': defaulted(integer({ min: 1, max: 100_000 })),
  'live.origins': defaulted(list('a list of origins', browserOrigin(), { maxItems: 1000, rule: originsRule })),

  'memory.heap': optional(size({ min: 64 * BYTES.mib, max: 64 * BYTES.gib })),

  'http.interface': defaulted(listenHost()),
  'http.port': defaulted(port(0)),
  'http.base-uri': required(
    absoluteHttpUrlValueType('an absolute http:// or https:// address without query and fragment', {
      quotableInMessages: true,
    }),
  ),
  'http.cors': defaulted(list('a list of origins', browserOrigin(), { maxItems: 1000, rule: originsRule })),
  'http.caller-paths': defaulted(flag()),
  'http.trusted-proxies': defaulted(list('a list of addresses', trustedProxy(), { maxItems: 1000 })),
  'http.max-body-size': defaulted(size({ min: BYTES.kib, max: 64 * BYTES.mib })),
  'http.max-event-body': defaulted(size({ min: BYTES.kib, max: 32 * BYTES.mib })),
  'http.max-header-size': defaulted(size({ min: 4 * BYTES.kib, max: BYTES.mib })),
  'http.request-timeout': defaulted(duration({ min: MS.second, max: 10 * MS.minute })),
  'http.stop-timeout': defaulted(duration({ min: 0, max: 10 * MS.minute })),

  'web.enabled': defaulted(flag()),

  'metrics.enabled': defaulted(flag()),
  'metrics.interface': defaulted(listenHost()),
  'metrics.port': defaulted(port(0)),

  'services.postgresql.embedded': defaulted(flag()),
  'services.postgresql.bin-dir': optional(location('the path of a folder')),
  'services.postgresql.host': defaulted(oneOrList('a server', databaseServer(), { maxItems: MAX_DATABASE_SERVERS })),
  'services.postgresql.port': defaulted(port(1)),
  'services.postgresql.db': defaulted(postgresqlIdentifier('name of a database')),
  'services.postgresql.user': defaulted(postgresqlIdentifier('name of a database user')),
  'services.postgresql.password': defaulted(password('a password')),
  'services.postgresql.tls': defaulted(choice(['disable', 'require', 'verify-full'])),
  'services.postgresql.ca-file': optional(location('the path of a PEM file', { isKeyFile: true })),
  'services.postgresql.certificate': optional(location('the path of a PEM file', { isKeyFile: true })),
  'services.postgresql.key': optional(location('the path of a PEM file', { isKeyFile: true })),
  'services.postgresql.unsafe': defaulted(flag()),
  'services.postgresql.pool-size': defaulted(integer({ min: 1, max: 500 })),
  'services.postgresql.pool-queue': defaulted(integer({ min: 0, max: 1_000_000 })),
  'services.postgresql.connect-timeout': defaulted(duration({ min: 100, max: MS.minute })),
  'services.postgresql.query-timeout': defaulted(duration({ min: 100, max: 10 * MS.minute })),
  'services.postgresql.flush-timeout': defaulted(duration({ min: 100, max: MS.minute })),
  'services.postgresql.lock-timeout': defaulted(duration({ min: 10, max: MS.minute })),

  'services.klatch-activation.uri': optional(
    absoluteHttpUrlValueType('an absolute http:// or https:// address without query and fragment'),
  ),
  'services.klatch-activation.auth-token': optional(
    text('a token on one line', { minCharacters: 1, maxCharacters: 4096, hidden: true, warnIfNotHeaderSafe: true }),
  ),
  'services.smtp.host': optional(connectHostValueType('a host name or an address')),
  'services.smtp.port': defaulted(port(1)),
  'services.smtp.tls': defaulted(choice(['starttls', 'implicit', 'none'])),
  'services.smtp.user': optional(text('a user name on one line', { minCharacters: 1, maxCharacters: 320 })),
  'services.smtp.password': optional(password('a password')),
  'services.smtp.from': optional(
    text('an e-mail address, with a name before it in front of <> if wanted', {
      minCharacters: 3,
      maxCharacters: 320,
      pattern: /@/,
    }),
  ),
  'services.smtp.template': optional(location('the path of a text file')),
  'activation.providers': defaulted(
    list('a list of providers', choice(activationProviderNames), { maxItems: activationProviderNames.length }),
  ),
  'services.google.push.keys': optional(list('a list of objects', googlePushKey, { maxItems: 100 })),
  'services.google.push.endpoint': defaulted(
    absoluteHttpUrlValueType('an absolute http:// or https:// address without query and fragment'),
  ),
  'services.google.push.token-endpoint': defaulted(
    absoluteHttpUrlValueType('an absolute http:// or https:// address without query and fragment'),
  ),
  'services.apple.push.keys': optional(list('a list of objects', applePushKey, { maxItems: 100 })),
  'services.apple.push.endpoint': optional(
    absoluteHttpUrlValueType('an absolute https:// address without query and fragment', { schemes: ['https'] }),
  ),
  'services.apple.push.ca-file': optional(location('the path of a PEM file', { isKeyFile: true })),
  'services.web-push.public': optional(webPushKey('a public key', 65, false)),
  'services.web-push.private': optional(webPushKey('a private key', 32, true)),
  'services.web-push.subject': optional(
    text('an address that begins with mailto: or https://', {
      minCharacters: 9,
      maxCharacters: 320,
      pattern: /^(?:mailto:.+@.+|https:\/\/.+)$/,
    }),
  ),
  'services.file-storage.location': optional(location('the path of a folder')),
  'services.aws.s3.default-bucket': optional(
    text('the name of a bucket (3 to 63 small letters, digits, "-" and ".")', {
      minCharacters: 3,
      maxCharacters: 63,
      pattern: /^[a-z0-9][a-z0-9.-]+[a-z0-9]$/,
    }),
  ),
  'services.aws.s3.access-key': optional(
    text('an access key on one line', { minCharacters: 1, maxCharacters: 256, warnIfNotHeaderSafe: true }),
  ),
  'services.aws.s3.secret-key': optional(
    text('a secret key on one line', { minCharacters: 1, maxCharacters: 1024, hidden: true }),
  ),
  'services.aws.s3.endpoint': defaulted(
    absoluteHttpUrlValueType('an absolute http:// or https:// address without query and fragment'),
  ),
  'services.aws.s3.region': defaulted(
    text('the name of a region', {
      minCharacters: 1,
      maxCharacters: 64,
      pattern: /^[a-z0-9-]+$/,
      quotableInMessages: true,
    }),
  ),
  'services.aws.s3.path-style-access': defaulted(flag()),
  'services.aws.s3.downloads': defaulted(choice(['proxy', 'redirect'])),
  'push.content': defaulted(choice(['full', 'sender', 'none'])),
  'push.debounce': defaulted(duration({ min: 0, max: MS.minute })),
  'push.in-flight': defaulted(integer({ min: 1, max: 1000 })),
  'push.timeout': defaulted(duration({ min: 100, max: MS.minute })),
  'push.retry': defaulted(
    list('a list of durations', duration({ min: 10, max: MS.day }), { minItems: 1, maxItems: 32 }),
  ),
  'push.ttl': defaulted(duration({ min: MS.second, max: 28 * MS.day })),
  'modules.security.server-keys': optional(list('a list of objects', serverKeyPair, { maxItems: 16 })),

  'modules.messaging.groups.invite.base-uri': optional(
    absoluteHttpUrlValueType('an absolute http:// or https:// address without query and fragment', {
      quotableInMessages: true,
    }),
  ),

  'limits.text-length': defaulted(integer({ min: 1, max: 200_000 })),
  'limits.intake-posts': defaulted(integer({ min: 1, max: 1_000_000 })),
  'limits.intake-size': defaulted(size({ min: BYTES.mib, max: 4 * BYTES.gib })),
  'limits.intake-timeout': defaulted(duration({ min: 100, max: MS.minute })),
  'limits.flush-posts': defaulted(integer({ min: 1, max: 5000 })),
  'limits.flush-size': defaulted(size({ min: 64 * BYTES.kib, max: 64 * BYTES.mib })),
  'limits.token-rate': defaulted(integer({ min: 1, max: 100_000 })),
  'limits.token-burst': defaulted(integer({ min: 1, max: 1_000_000 })),
  'limits.token-queue-timeout': defaulted(duration({ min: 0, max: MS.minute })),
  'limits.unknown-token-ttl': defaulted(duration({ min: 0, max: MS.hour })),
  'limits.unknown-token-cache': defaulted(integer({ min: 0, max: 1_000_000 })),
  'limits.unknown-token-rate': defaulted(integer({ min: 1, max: 100_000 })),
  'limits.parse-time': defaulted(duration({ min: 10, max: MS.minute })),
  'limits.hooks-per-group': defaulted(integer({ min: 1, max: 10_000 })),
  'limits.hook-registrations-per-minute': defaulted(integer({ min: 1, max: 10_000 })),
  'limits.hook-changes-per-minute': defaulted(integer({ min: 1, max: 10_000 })),
  'limits.hops': defaulted(integer({ min: 1, max: 100 })),
  'limits.session-rate': defaulted(integer({ min: 1, max: 100_000 })),
  'limits.session-burst': defaulted(integer({ min: 1, max: 1_000_000 })),
  'limits.sessions-per-user': defaulted(integer({ min: 1, max: 10_000 })),
  'limits.bots-per-user': defaulted(integer({ min: 0, max: 10_000 })),
  'limits.groups-per-user': defaulted(integer({ min: 1, max: 100_000 })),
  'limits.members-per-group': defaulted(integer({ min: 2, max: 1_000_000 })),
  'limits.invites-per-group': defaulted(integer({ min: 1, max: 10_000 })),
  'limits.devices-per-user': defaulted(integer({ min: 1, max: 1_000 })),
  'limits.file-size': defaulted(size({ min: BYTES.kib, max: 1024 * BYTES.gib })),
  'limits.storage-per-user': defaulted(size({ min: BYTES.mib, max: 1024 * 1024 * BYTES.gib })),
  'limits.storage-total': defaulted(size({ min: BYTES.mib, max: 1024 * 1024 * BYTES.gib })),
  'limits.concurrent-uploads': defaulted(integer({ min: 1, max: 10_000 })),
  'limits.concurrent-uploads-per-user': defaulted(integer({ min: 1, max: 1_000 })),
  'limits.attachments-per-message': defaulted(integer({ min: 1, max: 100 })),
  'limits.codes-per-hour': defaulted(integer({ min: 1, max: 1_000_000 })),
  'limits.codes-per-ip': defaulted(integer({ min: 1, max: 100_000 })),
  'limits.codes-per-address': defaulted(integer({ min: 1, max: 1_000 })),

  'delivery.allow': defaulted(list('a list of ranges and hosts', allowedDeliveryTarget(), { maxItems: 1000 })),
  'delivery.in-flight': defaulted(integer({ min: 1, max: 10_000 })),
  'delivery.per-host': defaulted(integer({ min: 1, max: 10_000 })),
  'delivery.connect-timeout': defaulted(duration({ min: 100, max: MS.minute })),
  'delivery.headers-timeout': defaulted(duration({ min: 100, max: 5 * MS.minute })),
  'delivery.response-size': defaulted(size({ min: 0, max: 16 * BYTES.mib })),
  'delivery.response-timeout': defaulted(duration({ min: 0, max: MS.minute })),
  'delivery.dns-concurrency': defaulted(integer({ min: 1, max: 8 })),
  'delivery.dns-timeout': defaulted(duration({ min: 100, max: MS.minute })),
  'delivery.dns-cache-ttl': defaulted(duration({ min: 0, max: MS.hour })),
  'delivery.dns-negative-ttl': defaulted(duration({ min: 0, max: MS.hour })),
  'delivery.retry': defaulted(
    list('a list of durations', duration({ min: 10, max: 7 * MS.day }), { minItems: 1, maxItems: 32 }),
  ),
  'delivery.retry-after-max': defaulted(duration({ min: 0, max: 7 * MS.day })),
  'delivery.park-after': defaulted(duration({ min: MS.second, max: 365 * MS.day })),

  'retention.delivery-log': defaulted(duration({ min: MS.hour, max: 365 * MS.day })),
  'retention.delivery-log-rows': defaulted(integer({ min: 1, max: 1_000_000 })),
  'retention.idempotency-keys': defaulted(duration({ min: MS.minute, max: 365 * MS.day })),
  'retention.removed-hooks': defaulted(duration({ min: 0, max: 3650 * MS.day })),
  'retention.orphaned-files': defaulted(duration({ min: MS.minute, max: 365 * MS.day })),
  'retention.push-log': defaulted(duration({ min: MS.hour, max: 365 * MS.day })),

  'log.level': defaulted(choice(['debug', 'info', 'warn', 'error'])),
  'log.format': defaulted(choice(['auto', 'json', 'text'])),
} as const;

type ConfigSchema = typeof CONFIG_SCHEMA;

/** A key of the configuration such as `http.port`. */
export type SettingKey = keyof ConfigSchema;

/** The values of all keys; null for an optional key that is not set. */
export type Settings = {
  readonly [K in SettingKey]: ConfigSchema[K] extends KeySpec<infer T, infer P>
    ? T | (P extends 'optional' ? null : never)
    : never;
};

/** The keys with their specifications, in the order of the schema. */
export function settingEntries(): readonly (readonly [SettingKey, KeySpec<unknown>])[] {
  return Object.entries(CONFIG_SCHEMA) as unknown as readonly (readonly [SettingKey, KeySpec<unknown>])[];
}
