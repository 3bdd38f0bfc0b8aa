import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { toHoconLiteral, type ConfigText } from '../../config/edit.ts';
import type { SettingKey } from '../../config/schema.ts';
import { checkAnswer, findContradiction, isEmbedded, answeredDatabaseKeys } from '../../config/setup.ts';
import type { Answers } from './configure.ts';
import type { CommandContext } from '../core/context.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import type { DatabaseFlags } from './setup-questions.ts';

/** The options of `klatch setup` as they were typed. */
export interface SetupOptions {
  readonly baseUri?: string;
  readonly projectName?: string;
  readonly embedded?: boolean;
  readonly localDatabase?: boolean;
  readonly cluster?: string;
  readonly socketDir?: string;
  readonly dbHost?: string;
  readonly dbPort?: string;
  readonly dbName?: string;
  readonly dbUser?: string;
  readonly dbPasswordFile?: string;
  readonly dbTls?: string;
  readonly dbCaFile?: string;
  readonly dataDir?: string;
  readonly interface?: string;
  readonly port?: string;
  readonly metricsPort?: string;
  readonly allow?: readonly string[];
  readonly webPushSubject?: string;
  readonly json?: boolean;
}

/** The options that set one key of the configuration to one value: option, key, and name in SetupOptions. */
const SINGLE_VALUE_OPTIONS = [
  ['--base-uri', 'http.base-uri', 'baseUri'],
  ['--project-name', 'project-name', 'projectName'],
  ['--data-dir', 'data-dir', 'dataDir'],
  ['--interface', 'http.interface', 'interface'],
  ['--port', 'http.port', 'port'],
  ['--metrics-port', 'metrics.port', 'metricsPort'],
  ['--db-host', 'services.postgresql.host', 'dbHost'],
  ['--db-port', 'services.postgresql.port', 'dbPort'],
  ['--db-name', 'services.postgresql.db', 'dbName'],
  ['--db-user', 'services.postgresql.user', 'dbUser'],
  ['--db-tls', 'services.postgresql.tls', 'dbTls'],
  ['--db-ca-file', 'services.postgresql.ca-file', 'dbCaFile'],
  ['--web-push-subject', 'services.web-push.subject', 'webPushSubject'],
] as const satisfies readonly (readonly [string, SettingKey, keyof SetupOptions])[];

/**
 * Reads the answers in the options, except for those about the database. Throws CommandError for values that the server
 * would refuse.
 */
export function readAnswers(options: SetupOptions): Answers {
  for (const [name, key, option] of SINGLE_VALUE_OPTIONS) {
    const value = options[option];
    const problem = value === undefined ? null : checkAnswer(key, value);
    if (problem !== null) throw new CommandError(exitCodes.usage, `${name}: ${problem}`);
  }
  const { baseUri, projectName, dataDir, port, metricsPort, allow, webPushSubject, dbTls, dbCaFile } = options;
  return {
    ...(baseUri === undefined ? {} : { baseUri }),
    ...(projectName === undefined ? {} : { projectName }),
    // A relative path on the command line is relative to the working folder; in the configuration it is relative to the
    // file.
    ...(dataDir === undefined ? {} : { dataDir: resolve(dataDir) }),
    ...(options.interface === undefined ? {} : { interface: options.interface }),
    ...(port === undefined ? {} : { port: Number(port) }),
    ...(metricsPort === undefined ? {} : { metricsPort: Number(metricsPort) }),
    ...(allow === undefined ? {} : { deliveryAllow: allow }),
    ...(webPushSubject === undefined ? {} : { webPushSubject }),
    ...(dbTls === undefined ? {} : { databaseTls: dbTls }),
    ...(dbCaFile === undefined ? {} : { databaseCaFile: resolve(dbCaFile) }),
  };
}

/** Reads the options about the database. Throws CommandError if the password file cannot be read. */
export function readDatabaseFlags({ env }: CommandContext, options: SetupOptions): DatabaseFlags {
  const { embedded = false, localDatabase = false, cluster, dbHost, dbPort, dbName, dbUser, dbPasswordFile } = options;
  if (embedded) return { embedded };
  const password = dbPasswordFile === undefined ? env['KLATCH_DB_PASSWORD'] : readPassword(dbPasswordFile);
  return {
    embedded,
    ...(localDatabase || cluster !== undefined ? { createsLocalDatabase: true } : {}),
    ...(cluster === undefined ? {} : { clusterName: cluster }),
    ...(dbHost === undefined ? {} : { host: dbHost }),
    ...(dbPort === undefined ? {} : { port: Number(dbPort) }),
    ...(dbName === undefined ? {} : { db: dbName }),
    ...(dbUser === undefined ? {} : { user: dbUser }),
    ...(password === undefined ? {} : { password }),
  };
}

/**
 * Throws CommandError, before anything is written, if an option contradicts the configuration. Setup does not change
 * existing values, and a script must learn that its option has no effect.
 */
export function refuseContradictions(source: ConfigText, options: SetupOptions, database: DatabaseFlags): void {
  const lines = [
    ...SINGLE_VALUE_OPTIONS.flatMap(([name, key, option]) => {
      const value = options[option];
      if (value === undefined) return [];
      const isPath = option === 'dataDir' || option === 'dbCaFile';
      const hoconLiteral = toHoconLiteral(isPath ? resolve(value) : value);
      return contradictionLines(source, key, { name, hoconLiteral, typedValue: value });
    }),
    ...(options.allow === undefined
      ? []
      : contradictionLines(source, 'delivery.allow', {
          name: '--allow',
          hoconLiteral: `[${options.allow.map(toHoconLiteral).join(', ')}]`,
          typedValue: options.allow.join(', '),
        })),
    ...passwordContradiction(source, options, database),
    ...databaseKindContradictions(source, options),
  ];
  if (lines.length === 0) return;
  const heading = `nothing was written: ${source.file} has other answers than these options, and setup never changes one:`;
  const advice = 'Change them in the file, or repeat the command without these options.';
  throw new CommandError(exitCodes.operationFailed, [heading, ...lines, advice].join('\n'));
}

function contradictionLines(
  source: ConfigText,
  key: SettingKey,
  givenOption: { name: string; hoconLiteral: string; typedValue: string },
): string[] {
  const found = findContradiction(source, key, givenOption.hoconLiteral);
  if (found === null) return [];
  const { line, text } = found;
  const where = line === null ? 'elsewhere' : `line ${line}`;
  const says = text === null ? `${key} is set` : `${key} = ${text}`;
  return [
    `  ${where}: ${says}, and ${givenOption.name} says ${text === null ? 'something else' : givenOption.typedValue}`,
  ];
}

/**
 * Lines that say that the given password contradicts the configuration. Checks only one from `--db-password-file`: the
 * environment variable with a password may be set for another reason.
 */
function passwordContradiction(source: ConfigText, options: SetupOptions, { password }: DatabaseFlags): string[] {
  if (options.dbPasswordFile === undefined || password === undefined) return [];
  const givenOption = { name: '--db-password-file', hoconLiteral: toHoconLiteral(password), typedValue: '' };
  return contradictionLines(source, 'services.postgresql.password', givenOption);
}

/**
 * Lines about options that would switch the configuration between the embedded and an external database: the server
 * would then start with an empty database.
 */
function databaseKindContradictions(source: ConfigText, options: SetupOptions): string[] {
  const { embedded = false } = options;
  const locationOptions = ['localDatabase', 'cluster', 'dbHost', 'dbPort', 'dbName', 'dbUser'] as const;
  if (embedded) {
    return [
      ...contradictionLines(source, 'services.postgresql.embedded', {
        name: '--embedded',
        hoconLiteral: 'true',
        typedValue: 'true',
      }),
      ...answeredDatabaseKeys(source).map(
        (key) => `  ${key} is set: a database is named already, and --embedded means another`,
      ),
    ];
  }
  if (!isEmbedded(source) || locationOptions.every((option) => options[option] === undefined)) return [];
  return ['  services.postgresql.embedded is on, and the options name another database'];
}

/** Reads a password from a file. A line break at the end of the file is left out: editors add it. */
function readPassword(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reasons: Readonly<Record<string, string>> = {
      ENOENT: 'there is no such file',
      EACCES: 'it may not be read by this user',
      EISDIR: 'it is a folder',
    };
    const reason = reasons[code ?? ''] ?? `it cannot be read (${code})`;
    throw new CommandError(exitCodes.usage, `--db-password-file ${file}: ${reason}`, { cause: error });
  }
}
