import { currentValue, keyState, type ConfigText } from '../../config/edit.ts';
import { scalarText } from '../../config/value-types.ts';
import type { SettingKey } from '../../config/schema.ts';
import { checkAnswer, type DatabaseSetupAnswer } from '../../config/setup.ts';
import type { LocalCluster } from '../../storage/provision/clusters.ts';
import type { Answers } from './configure.ts';
import type { Prompt } from '../core/prompt.ts';

/** The defaults for the address of a database server and for the names of database and user, as in reference.conf. */
export const databaseConnectionDefaults = { host: '127.0.0.1', port: 5432, db: 'klatch', user: 'klatch' } as const;
const POSTGRESQL_SECTION = 'services.postgresql';

/** The options about the database. `embedded` excludes all others, and `createsLocalDatabase` excludes `host`. */
export interface DatabaseFlags {
  readonly embedded: boolean;
  /** True: setup creates a database in PostgreSQL on this machine. */
  readonly createsLocalDatabase?: boolean;
  /** Debian's name of the PostgreSQL server to use, such as "15/main". */
  readonly clusterName?: string;
  readonly host?: string;
  readonly port?: number;
  readonly db?: string;
  readonly user?: string;
  readonly password?: string;
}

/** The answers without which no working configuration can be written. */
export type MissingAnswer = 'base-uri' | 'database' | 'password';

/** For each missing answer, the option with which a script can give it. */
export const missingAnswerAdvice: Readonly<Record<MissingAnswer, string>> = {
  'base-uri': '--base-uri URL: the public address of the HTTP interface, such as https://chat.example.org',
  database:
    '--local-database (as root) for one in PostgreSQL on this machine, --embedded for a private PostgreSQL in the data ' +
    'directory, or --db-host for one of yours',
  password: '--db-password-file FILE, or KLATCH_DB_PASSWORD in the environment (may be empty): the database password',
};

/** The databases on this machine that setup can offer to a person. */
export interface DatabaseOffers {
  /** The usable PostgreSQL servers, each with a sentence for a person. */
  readonly local: readonly { readonly cluster: LocalCluster; readonly text: string }[];
  /** A sentence about the embedded database; null: PostgreSQL's programs are not installed. */
  readonly embeddedOffer: string | null;
  /** Sentences about servers that exist but cannot be used, with the reasons. */
  readonly unusableReasons: readonly string[];
}

/** Finds the answers that are neither in the options nor in the configuration. */
export function findMissing(source: ConfigText, answers: Answers, database: DatabaseFlags): readonly MissingAnswer[] {
  const missing: MissingAnswer[] = [];
  if (answers.baseUri === undefined && isUnanswered(source, 'http.base-uri')) missing.push('base-uri');
  const choice = databaseChoice(source, database);
  if (choice === 'open') missing.push('database');
  if (choice === 'external' && needsPassword(source, database)) missing.push('password');
  return missing;
}

/** The answers of a person, by options or at the prompt. */
export interface GivenAnswers {
  readonly answers: Answers;
  readonly database: DatabaseFlags;
}

/** Asks a person for the missing answers. Calls `offers` only if the database is among them. */
export async function askMissing(
  source: ConfigText,
  given: GivenAnswers & { readonly missing: readonly MissingAnswer[]; readonly offers: () => Promise<DatabaseOffers> },
  prompt: Prompt,
): Promise<GivenAnswers> {
  let { answers, database } = given;
  if (given.missing.includes('base-uri')) {
    const defaultValue = `http://127.0.0.1:${answers.port ?? 9090}`;
    const text = 'Public address of the HTTP interface';
    answers = { ...answers, baseUri: await askForSetting(prompt, 'http.base-uri', { text, defaultValue }) };
  }
  if (given.missing.includes('database'))
    database = { ...database, ...(await askDatabase(prompt, await given.offers(), database)) };
  if (databaseChoice(source, database) === 'external' && needsPassword(source, database)) {
    const text = 'Database password (not shown)';
    database = {
      ...database,
      password: await askForSetting(prompt, `${POSTGRESQL_SECTION}.password`, { text, isTypingHidden: true }),
    };
  }
  return { answers, database };
}

/**
 * Adds the database that the options describe to the answers. If the options have no host, port, name or user, adds a
 * database only if the configuration selects an external one and lacks its password.
 */
export function answersWithDatabase(source: ConfigText, { answers, database: flags }: GivenAnswers): Answers {
  if (flags.embedded) return { ...answers, database: { embedded: true } };
  const { embedded: _, createsLocalDatabase: __, clusterName: ___, ...given } = flags;
  const fillsPassword =
    databaseChoice(source, flags) === 'external' && isUnanswered(source, `${POSTGRESQL_SECTION}.password`);
  if (!namesDatabase(flags) && !fillsPassword) return answers;
  const database: DatabaseSetupAnswer = { ...databaseConnectionDefaults, password: '', ...given };
  return { ...answers, database };
}

/**
 * True if the options describe a database. A password alone does not: its environment variable may be set for another
 * reason.
 */
function namesDatabase({ host, port, db, user }: DatabaseFlags): boolean {
  return [host, port, db, user].some((each) => each !== undefined);
}

function isUnanswered(source: ConfigText, key: SettingKey): boolean {
  return keyState(source, key) === 'open';
}

function databaseChoice(source: ConfigText, flags: DatabaseFlags): 'embedded' | 'external' | 'local' | 'open' {
  if (flags.createsLocalDatabase === true) return 'local';
  const value = currentValue(source, `${POSTGRESQL_SECTION}.embedded`);
  const keys = ['host', 'port', 'db', 'user', 'password'] as const;
  if (value !== null) return ['true', 'yes', 'on'].includes(scalarText(value) ?? '') ? 'embedded' : 'external';
  if (keys.some((name) => !isUnanswered(source, `${POSTGRESQL_SECTION}.${name}`))) return 'external';
  if (flags.embedded) return 'embedded';
  return impliesExternalServer(flags) ? 'external' : 'open';
}

/**
 * True if the options describe an existing database: they have a host, or a password together with a port, name or
 * user. Without a password, a name may also be that of a database to create on this machine.
 */
function impliesExternalServer(flags: DatabaseFlags): boolean {
  return flags.host !== undefined || (flags.password !== undefined && namesDatabase(flags));
}

/**
 * True if setup needs a password for the database. Over a Unix socket it needs none, since PostgreSQL usually
 * identifies the user without one.
 */
function needsPassword(source: ConfigText, { host, password }: DatabaseFlags): boolean {
  if (password !== undefined || !isUnanswered(source, `${POSTGRESQL_SECTION}.password`)) return false;
  const value = currentValue(source, `${POSTGRESQL_SECTION}.host`);
  const effectiveHost = value === null ? host : (scalarText(value) ?? undefined);
  return effectiveHost?.startsWith('/') !== true;
}

async function askDatabase(prompt: Prompt, offers: DatabaseOffers, flags: DatabaseFlags): Promise<DatabaseFlags> {
  const { local, embeddedOffer: embedded, unusableReasons } = offers;
  const choices: { text: string; answer: DatabaseFlags | null }[] = local.map(({ cluster: { name, port }, text }) => ({
    text,
    answer: { embedded: false, createsLocalDatabase: true, port, ...(name !== null && { clusterName: name }) },
  }));
  if (embedded !== null) choices.push({ text: embedded, answer: { embedded: true } });
  choices.push({ text: 'another server, on which you have a database and its password', answer: null });
  prompt.say(
    ...unusableReasons,
    'Where is the database?',
    ...choices.map(({ text }, index) => `  ${index + 1}  ${text}`),
  );
  const check = (answer: string): string | null =>
    /^\d{1,3}$/.test(answer) && choices[Number(answer) - 1] !== undefined
      ? null
      : `answer with a number from 1 to ${choices.length}`;
  const chosen = choices[Number(await prompt.ask({ text: 'Number', defaultValue: '1', check })) - 1]!.answer;
  return chosen ?? askExternalDatabase(prompt, flags);
}

/** Asks a person for the values of an external database that the options do not contain. */
async function askExternalDatabase(prompt: Prompt, flags: DatabaseFlags): Promise<DatabaseFlags> {
  const defaults = databaseConnectionDefaults;
  const host =
    flags.host ??
    (await askForSetting(prompt, `${POSTGRESQL_SECTION}.host`, { text: 'Database host', defaultValue: defaults.host }));
  const portQuestion = { text: 'Database port', defaultValue: String(defaults.port) };
  const port = flags.port ?? Number(await askForSetting(prompt, `${POSTGRESQL_SECTION}.port`, portQuestion));
  const db =
    flags.db ??
    (await askForSetting(prompt, `${POSTGRESQL_SECTION}.db`, { text: 'Database name', defaultValue: defaults.db }));
  const user =
    flags.user ??
    (await askForSetting(prompt, `${POSTGRESQL_SECTION}.user`, { text: 'Database user', defaultValue: defaults.user }));
  return { embedded: false, host, port, db, user };
}

async function askForSetting(
  prompt: Prompt,
  key: SettingKey,
  question: { text: string; defaultValue?: string; isTypingHidden?: boolean },
): Promise<string> {
  return prompt.ask({ ...question, check: (answer) => checkAnswer(key, answer) });
}
