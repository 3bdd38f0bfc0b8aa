/** The parts of the configuration about services that the server connects to; see config.ts. */
import { join } from 'node:path';
import type { DeepReadonly } from './deep-readonly.ts';
import type { Settings } from './schema.ts';

export type SmtpConfig = DeepReadonly<NonNullable<ReturnType<typeof buildSmtp>>>;

export function buildSmtp(settings: Settings) {
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
    /** The absolute path of the e-mail template; null: the default template. */
    emailTemplatePath: settings['services.smtp.template']?.path ?? null,
  };
}

/** The settings of pushes that apply to all vendors. */
export type PushConfig = DeepReadonly<ReturnType<typeof buildPush>>;

export function buildPush(settings: Settings) {
  return {
    content: settings['push.content'],
    /** How long the server collects messages before it sends a push about them. */
    pushDebounceMs: settings['push.debounce'],
    maxInFlightPerVendor: settings['push.in-flight'],
    /** The longest time that a vendor may take for an answer. */
    timeoutMs: settings['push.timeout'],
    /** The wait before each retry of a push. The last wait applies to all further retries, until the push expires. */
    pushRetryDelaysMs: settings['push.retry'],
    pushExpiresAfterMs: settings['push.ttl'],
  };
}

export type GooglePushConfig = DeepReadonly<ReturnType<typeof buildGooglePush>>;

export function buildGooglePush(settings: Settings) {
  const keys = settings['services.google.push.keys'] ?? [];
  return {
    /** One key for each project. `key`: the absolute path of a service account's file, or its JSON. */
    keys: keys.map((each) => ({ projectId: each['project-id'], key: each.key.path })),
    googlePushEndpoint: settings['services.google.push.endpoint'],
    tokenEndpoint: settings['services.google.push.token-endpoint'],
  };
}

export type ApplePushConfig = DeepReadonly<ReturnType<typeof buildApplePush>>;
export type ApplePushKey = DeepReadonly<ApplePushConfig['keys'][number]>;

export function buildApplePush(settings: Settings) {
  const keys = settings['services.apple.push.keys'] ?? [];
  return {
    keys: keys.map((each) => ({
      keyId: each['key-id'],
      teamId: each['team-id'],
      /** The absolute path of the .p8 file. */
      path: each.path.path,
      /** The id of the app, which Apple calls the topic. */
      bundleId: each['bundle-id'],
      sandbox: each.sandbox ?? false,
    })),
    /** Null: Apple's own endpoint; for a key with `sandbox`, that of Apple's sandbox. */
    applePushEndpoint: settings['services.apple.push.endpoint'],
    /** The absolute path of a PEM file with authorities that are trusted in addition to the system's; null: none. */
    extraAppleCaFile: settings['services.apple.push.ca-file']?.path ?? null,
  };
}

/** The VAPID keys (RFC 8292) for web push, in base64url. The public key is the uncompressed point. */
export type WebPushConfig = DeepReadonly<NonNullable<ReturnType<typeof buildWebPush>>>;

export function buildWebPush(settings: Settings) {
  const publicKey = settings['services.web-push.public'];
  const privateKey = settings['services.web-push.private'];
  const vapidSubject = settings['services.web-push.subject'];
  if (publicKey === null || privateKey === null || vapidSubject === null) return null;
  return { public: publicKey, private: privateKey, vapidSubject };
}

export type FileStoreConfig = DeepReadonly<ReturnType<typeof buildFileStore>>;

export function buildFileStore(settings: Settings) {
  return {
    /** The absolute path of the folder for files. Not used if `s3` is set. */
    localFilesFolder: settings['services.file-storage.location']?.path ?? join(settings['data-dir'].path, 'files'),
    s3: buildS3(settings),
  };
}

export type S3Config = DeepReadonly<NonNullable<ReturnType<typeof buildS3>>>;

function buildS3(settings: Settings) {
  const bucket = settings['services.aws.s3.default-bucket'];
  const accessKey = settings['services.aws.s3.access-key'];
  const secretKey = settings['services.aws.s3.secret-key'];
  if (bucket === null || accessKey === null || secretKey === null) return null;
  return {
    bucket,
    accessKey,
    secretKey,
    s3Endpoint: settings['services.aws.s3.endpoint'],
    region: settings['services.aws.s3.region'],
    /** True: the bucket's name is the first part of the URL's path. False: it is the first part of the host name. */
    pathStyle: settings['services.aws.s3.path-style-access'],
    /** How clients download files: through this server, or by a redirect to the bucket. */
    downloads: settings['services.aws.s3.downloads'],
  };
}

export type PostgresqlConfig = DeepReadonly<ReturnType<typeof buildPostgresql>>;

export function buildPostgresql(settings: Settings) {
  const [first, ...others] = settings['services.postgresql.host'].map(({ host, port }) => {
    return { host, port: port ?? settings['services.postgresql.port'] };
  });
  return {
    /**
     * True: Klatch runs a PostgreSQL server of its own in the data directory. Then host, port, db, user and password
     * are not used.
     */
    embedded: settings['services.postgresql.embedded'],
    /** The folder with `initdb` and `postgres`, for the embedded database; null: Klatch searches for it. */
    binDir: settings['services.postgresql.bin-dir']?.path ?? null,
    /** `host`: a host name, an address, or the folder of a Unix socket. */
    ...first!,
    /** The other servers of the database cluster, in the order in which they are tried. */
    otherHosts: others,
    db: settings['services.postgresql.db'],
    user: settings['services.postgresql.user'],
    password: settings['services.postgresql.password'],
    /** The TLS settings of the connections; null: no TLS. */
    tls: buildDatabaseTls(settings),
    /** True: a database that runs with `fsync = off` is accepted. */
    allowFsyncOff: settings['services.postgresql.unsafe'],
    /** The number of connections of the general pool. Intake, settlement and LISTEN have connections of their own. */
    generalPoolSize: settings['services.postgresql.pool-size'],
    /** The most calls that wait for a connection of one pool. Further calls are refused. */
    poolQueue: settings['services.postgresql.pool-queue'],
    connectTimeoutMs: settings['services.postgresql.connect-timeout'],
    /** A query without an answer after this time fails, and its connection is closed. */
    databaseCallTimeoutMs: settings['services.postgresql.query-timeout'],
    /** A flush of posts without an answer after this time fails, and its connection is closed. */
    flushTimeoutMs: settings['services.postgresql.flush-timeout'],
    lockTimeoutMs: settings['services.postgresql.lock-timeout'],
  };
}

/** The TLS settings of connections to the database: absolute paths of PEM files, or null. */
export type DatabaseTlsConfig = DeepReadonly<NonNullable<ReturnType<typeof buildDatabaseTls>>>;

function buildDatabaseTls(settings: Settings) {
  const mode = settings['services.postgresql.tls'];
  if (mode === 'disable') return null;
  return {
    mode,
    /** The file with the authorities that are trusted for the database server's certificate; null: those of Node.js. */
    databaseCaFile: settings['services.postgresql.ca-file']?.path ?? null,
    /** The client certificate, for a database that requests one. */
    certificate: settings['services.postgresql.certificate']?.path ?? null,
    key: settings['services.postgresql.key']?.path ?? null,
  };
}
