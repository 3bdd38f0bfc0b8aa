import { currentValue, keyState, type ConfigText } from '../config/edit.ts';
import { scalarText } from '../config/kind.ts';
import type { SettingKey } from '../config/schema.ts';
import { checkAnswer, type DatabaseAnswer } from '../config/setup.ts';
import type { Answers } from './configure.ts';
import type { Prompt } from './prompt.ts';

/** What a database of somebody else's is called where nobody says otherwise; the defaults of reference.conf. */
const DATABASE = { host: '127.0.0.1', port: 5432, db: 'klatch', user: 'klatch' } as const;
const POSTGRESQL = 'services.postgresql';

/** What the flags said of the database; `embedded` excludes the others. */
export interface DatabaseFlags {
  readonly embedded: boolean;
  readonly host?: string;
  readonly port?: number;
  readonly db?: string;
  readonly user?: string;
  readonly password?: string;
}

/** Answers without which there is no working configuration. */
export type Missing = 'base-uri' | 'database' | 'password';

/** How each of them is given where nobody can be asked. */
export const howToGive: Readonly<Record<Missing, string>> = {
  'base-uri': '--base-uri URL: the public address of the HTTP interface, such as https://chat.example.org',
  database: '--embedded for a private PostgreSQL in the data directory, or --db-host for one of yours',
  password: '--db-password-file FILE, or KLATCH_DB_PASSWORD in the environment (may be empty): the database password',
};

/** What neither the flags nor the configuration answer. */
export function findMissing(source: ConfigText, answers: Answers, database: DatabaseFlags): readonly Missing[] {
  const missing: Missing[] = [];
  if (answers.baseUri === undefined && isOpen(source, 'http.base-uri')) missing.push('base-uri');
  const choice = databaseChoice(source, database);
  if (choice === 'open') missing.push('database');
  if (choice === 'external' && needsPassword(source, database)) missing.push('password');
  return missing;
}

/** Asks for what is missing and gives all answers. */
export async function askMissing(
  source: ConfigText,
  given: { answers: Answers; database: DatabaseFlags; missing: readonly Missing[] },
  prompt: Prompt,
): Promise<Answers> {
  let { answers, database } = given;
  if (given.missing.includes('base-uri')) {
    const preset = `http://127.0.0.1:${answers.port ?? 9090}`;
    const text = 'Public address of the HTTP interface';
    answers = { ...answers, baseUri: await askFor(prompt, 'http.base-uri', { text, preset }) };
  }
  if (given.missing.includes('database')) database = await askDatabase(prompt);
  if (databaseChoice(source, database) === 'external' && needsPassword(source, database)) {
    const text = 'Database password (not shown)';
    database = { ...database, password: await askFor(prompt, `${POSTGRESQL}.password`, { text, hidden: true }) };
  }
  return withDatabase(source, answers, database);
}

/** The answers with what the flags say of the database; nothing of it where the configuration says it all. */
export function withDatabase(source: ConfigText, answers: Answers, flags: DatabaseFlags): Answers {
  if (flags.embedded) return { ...answers, database: { embedded: true } };
  const { embedded: _, ...given } = flags;
  const fillsPassword = databaseChoice(source, flags) === 'external' && isOpen(source, `${POSTGRESQL}.password`);
  if (!namesDatabase(flags) && !fillsPassword) return answers;
  const database: DatabaseAnswer = { ...DATABASE, password: '', ...given };
  return { ...answers, database };
}

/** A password alone names nothing: its variable may be set for another reason. */
function namesDatabase({ host, port, db, user }: DatabaseFlags): boolean {
  return [host, port, db, user].some((each) => each !== undefined);
}

function isOpen(source: ConfigText, key: SettingKey): boolean {
  return keyState(source, key) === 'open';
}

function databaseChoice(source: ConfigText, flags: DatabaseFlags): 'embedded' | 'external' | 'open' {
  const value = currentValue(source, `${POSTGRESQL}.embedded`);
  const keys = ['host', 'port', 'db', 'user', 'password'] as const;
  if (value !== null) return ['true', 'yes', 'on'].includes(scalarText(value) ?? '') ? 'embedded' : 'external';
  if (keys.some((name) => !isOpen(source, `${POSTGRESQL}.${name}`))) return 'external';
  if (flags.embedded) return 'embedded';
  return namesDatabase(flags) ? 'external' : 'open';
}

/** Over a Unix socket the database as a rule knows its users by themselves. */
function needsPassword(source: ConfigText, { host, password }: DatabaseFlags): boolean {
  if (password !== undefined || !isOpen(source, `${POSTGRESQL}.password`)) return false;
  const value = currentValue(source, `${POSTGRESQL}.host`);
  const place = value === null ? host : (scalarText(value) ?? undefined);
  return place?.startsWith('/') !== true;
}

async function askDatabase(prompt: Prompt): Promise<DatabaseFlags> {
  const check = (answer: string): string | null => (/^(y|yes|n|no)$/i.test(answer) ? null : 'answer yes or no');
  const text = 'Run a private PostgreSQL in the data directory? "no" takes a database of yours';
  if (/^y/i.test(await prompt.ask({ text, preset: 'yes', check }))) return { embedded: true };
  const host = await askFor(prompt, `${POSTGRESQL}.host`, { text: 'Database host', preset: DATABASE.host });
  const port = await askFor(prompt, `${POSTGRESQL}.port`, { text: 'Database port', preset: String(DATABASE.port) });
  const db = await askFor(prompt, `${POSTGRESQL}.db`, { text: 'Database name', preset: DATABASE.db });
  const user = await askFor(prompt, `${POSTGRESQL}.user`, { text: 'Database user', preset: DATABASE.user });
  return { embedded: false, host, port: Number(port), db, user };
}

async function askFor(
  prompt: Prompt,
  key: SettingKey,
  question: { text: string; preset?: string; hidden?: boolean },
): Promise<string> {
  return prompt.ask({ ...question, check: (answer) => checkAnswer(key, answer) });
}
