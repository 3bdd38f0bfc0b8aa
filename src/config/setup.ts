import { randomBytes } from 'node:crypto';
import { loadHocon, valueAt, type Value } from '../../packages/hocon/src/index.ts';
import type { LiveTransport } from '../model/transport.ts';
import type { ServerKeyFiles } from './config.ts';
import { currentValue, keyState, toHoconLiteral, setKey } from './edit.ts';
import type { ConfigText } from './edit.ts';
import { isPlaceholder, scalarText } from './value-types.ts';
import { ConfigError } from './problem.ts';
import type { ConfigProblem } from './problem.ts';
import { CONFIG_SCHEMA } from './schema.ts';
import type { SettingKey } from './schema.ts';
import { webPushSubject, type WebPushKeys } from './keys/web-push-keys.ts';

/**
 * The answer to the setup's question about the database: the embedded one, or the address and the names of an external
 * one.
 */
export type DatabaseSetupAnswer =
  | { readonly embedded: true }
  | {
      readonly embedded?: false;
      readonly host: string;
      readonly port: number;
      readonly db: string;
      readonly user: string;
      readonly password: string;
    };

/**
 * The answers that `klatch setup` collected. A key without an answer is not written, and keeps the value of the file or
 * of reference.conf.
 */
export interface SetupAnswers {
  readonly secret?: string;
  readonly baseUri?: string;
  readonly database?: DatabaseSetupAnswer;
  readonly databaseTls?: string;
  readonly databaseCaFile?: string;
  readonly dataDir?: string;
  readonly serverKeys?: ServerKeyFiles;
  readonly interface?: string;
  readonly port?: number;
  readonly projectName?: string;
  readonly deliveryAllow?: readonly string[];
  readonly metrics?: boolean;
  readonly metricsPort?: number;
  readonly endpoints?: readonly { readonly type: LiveTransport; readonly port: number }[];
  readonly webPushKeys?: WebPushKeys;
  /**
   * The contact for push services. If it is absent and `webPushKeys` is given, the contact is derived from the
   * base-uri.
   */
  readonly webPushSubject?: string;
}

/** The new text of the configuration. `set`: the keys that were written; `kept`: those that had a value already. */
export interface SetupResult {
  readonly text: string;
  readonly set: readonly SettingKey[];
  readonly kept: readonly SettingKey[];
}

/** Creates a server secret of 256 random bits. */
export function createServerSecret(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * Writes the answers into the text of a template or an existing server.conf; comments stay. Does not change a key that
 * has a value, but lists it in `kept`. Throws ConfigError for an invalid text, and for answers that the server would
 * refuse; no message contains a secret. Writes no file: see `writeConfig`.
 */
export function applyAnswers(source: ConfigText, answers: SetupAnswers): SetupResult {
  const wanted = answersAsLiterals(source, answers);
  const problems = [...wanted].flatMap(([key, literal]): ConfigProblem[] => {
    const sentence = answerProblem(key, literal);
    return sentence === null ? [] : [{ file: source.file, line: null, key, sentence }];
  });
  if (problems.length > 0) throw new ConfigError(problems);
  let current = source;
  const writtenKeys: SettingKey[] = [];
  const keptKeys: SettingKey[] = [...keysBlockingDatabaseAnswer(source, answers)];
  for (const [key, literal] of wanted) {
    if (keyState(current, key) === 'answered') keptKeys.push(key);
    else {
      current = setKey(current, key, literal);
      writtenKeys.push(key);
    }
  }
  return { text: current.text, set: writtenKeys, kept: keptKeys };
}

/**
 * Says, in a sentence for the prompt, why the server would refuse an answer; null: the server would accept it.
 * `answer`: the typed text, also for a number.
 */
export function checkAnswer(key: SettingKey, answer: string): string | null {
  return answerProblem(key, toHoconLiteral(answer));
}

function answerProblem(key: SettingKey, literal: string): string | null {
  const value = valueAt(loadHocon([{ name: 'answer', text: `answer = ${literal}` }], { env: {} }), ['answer']);
  if (value === null) return 'cannot be written';
  if (isPlaceholder(value)) return 'looks like a placeholder: choose another value';
  const sentences: string[] = [];
  CONFIG_SCHEMA[key].kind.read(key, value, { refuse: (_, __, sentence) => sentences.push(sentence), warn: () => {} });
  return sentences[0] ?? null;
}

/** A value that the configuration contains already, and that contradicts an answer. */
interface ExistingAnswer {
  /** The line number in the file; null: the value is from an included file or an environment variable. */
  readonly line: number | null;
  /** The value as it was written; null if it may be a secret or is from an environment variable. */
  readonly text: string | null;
}

/**
 * The value of a key in the configuration if it differs from `literal` (HOCON text); null if both are equal, or the key
 * has no value. Compares parsed values, so that for instance quotes make no difference.
 */
export function findContradiction(source: ConfigText, key: SettingKey, literal: string): ExistingAnswer | null {
  if (keyState(source, key) !== 'answered') return null;
  const current = currentValue(source, key);
  if (current === null) return { line: null, text: null };
  const given = valueAt(loadHocon([{ name: source.file, text: `answer = ${literal}` }], { env: {} }), ['answer']);
  if (given !== null && comparableMeaning(key, current) === comparableMeaning(key, given)) return null;
  const { kind } = CONFIG_SCHEMA[key];
  // A value that the type refuses may be a whole URL with a password, written in place of a host. So it is hidden.
  const read: unknown = kind.read(key, current, { refuse: () => {}, warn: () => {} });
  const isHidden = kind.hidden || (!kind.quotableInMessages && read === undefined);
  const line = current.origin.file === source.file ? current.origin.line : null;
  return { line, text: isHidden ? null : valueAsWritten(current) };
}

/** The parsed value as a text, by which two values are compared. */
function comparableMeaning(key: SettingKey, value: Value): string {
  const { kind } = CONFIG_SCHEMA[key];
  const read: unknown = kind.read(key, value, { refuse: () => {}, warn: () => {} });
  if (read === undefined) return `not understood: ${valueAsWritten(value)}`;
  return JSON.stringify(kind.isPath ? (read as { path: string }).path : read);
}

function valueAsWritten(value: Value): string {
  if (value.kind === 'array') return `[${value.items.map(valueAsWritten).join(', ')}]`;
  return scalarText(value) ?? 'a value of another kind';
}

type HoconLiterals = ReadonlyMap<SettingKey, string>;

/** The answers as HOCON text, by key. */
function answersAsLiterals(source: ConfigText, answers: SetupAnswers): HoconLiterals {
  const { serverKeys: pair, deliveryAllow, endpoints } = answers;
  const rows: readonly (readonly [SettingKey, string | undefined])[] = [
    ['secret', optionalLiteral(answers.secret)],
    ['project-name', optionalLiteral(answers.projectName)],
    ['data-dir', optionalLiteral(answers.dataDir)],
    ['http.interface', optionalLiteral(answers.interface)],
    ['http.port', optionalLiteral(answers.port)],
    ['http.base-uri', optionalLiteral(answers.baseUri)],
    ['metrics.enabled', answers.metrics === undefined ? undefined : String(answers.metrics)],
    ['metrics.port', optionalLiteral(answers.metricsPort)],
    [`${POSTGRESQL}.tls`, optionalLiteral(answers.databaseTls)],
    [`${POSTGRESQL}.ca-file`, optionalLiteral(answers.databaseCaFile)],
    ['endpoints', endpoints === undefined ? undefined : `[${endpoints.map(endpointLiteral).join(', ')}]`],
    ...databaseLiterals(source, answers.database),
    [
      'modules.security.server-keys',
      pair === undefined
        ? undefined
        : `[{ public = ${toHoconLiteral(pair.public)}, private = ${toHoconLiteral(pair.private)} }]`,
    ],
    ['delivery.allow', deliveryAllow === undefined ? undefined : `[${deliveryAllow.map(toHoconLiteral).join(', ')}]`],
    ...webPushLiterals(source, answers),
  ];
  return new Map(rows.filter((row): row is readonly [SettingKey, string] => row[1] !== undefined));
}

const optionalLiteral = (value: string | number | undefined): string | undefined =>
  value === undefined ? undefined : toHoconLiteral(value);

const endpointLiteral = ({ type, port }: { type: LiveTransport; port: number }): string =>
  `{ type = ${type}, port = ${port} }`;

const WEB_PUSH_SECTION = 'services.web-push';

/**
 * The settings of web push as HOCON text. If the configuration already has the public or the private key, the other one
 * is not written: the two would not belong together.
 */
function webPushLiterals(source: ConfigText, answers: SetupAnswers): [SettingKey, string | undefined][] {
  const { webPushKeys: pair, webPushSubject: given } = answers;
  if (pair === undefined) return [[`${WEB_PUSH_SECTION}.subject`, optionalLiteral(given)]];
  const halves = ['public', 'private'] as const;
  const isOpen = (half: 'public' | 'private'): boolean => keyState(source, `${WEB_PUSH_SECTION}.${half}`) === 'open';
  const fits = (half: 'public' | 'private'): boolean => !isOpen(half) || halves.every(isOpen);
  const uri = currentValue(source, 'http.base-uri');
  const baseUri = uri === null || isPlaceholder(uri) ? (answers.baseUri ?? null) : scalarText(uri);
  return [
    ...halves.map((half): [SettingKey, string | undefined] => [
      `${WEB_PUSH_SECTION}.${half}`,
      fits(half) ? toHoconLiteral(pair[half]) : undefined,
    ]),
    [`${WEB_PUSH_SECTION}.subject`, toHoconLiteral(given ?? webPushSubject(baseUri))],
  ];
}

const DATABASE_KEYS = ['host', 'port', 'db', 'user', 'password'] as const;
const POSTGRESQL = 'services.postgresql';

/**
 * The settings of the database as HOCON text. They never switch a configuration between an external and the embedded
 * database, since the server would start with an empty one. For the embedded database, a placeholder for the password
 * is replaced by an empty text, because it would prevent the start.
 */
function databaseLiterals(
  source: ConfigText,
  answer: DatabaseSetupAnswer | undefined,
): [SettingKey, string | undefined][] {
  if (answer === undefined) return [];
  const password = currentValue(source, `${POSTGRESQL}.password`);
  const emptiedPassword: [SettingKey, string | undefined] = [
    `${POSTGRESQL}.password`,
    password !== null && isPlaceholder(password) ? '""' : undefined,
  ];
  if (answer.embedded === true) {
    if (answeredDatabaseKeys(source).length > 0) return [];
    const isOpen = keyState(source, `${POSTGRESQL}.embedded`) === 'open';
    return [[`${POSTGRESQL}.embedded`, 'true'], ...(isOpen ? [emptiedPassword] : [])];
  }
  if (isEmbedded(source)) return [emptiedPassword];
  return DATABASE_KEYS.map((name) => [`${POSTGRESQL}.${name}`, toHoconLiteral(answer[name])]);
}

/** True if the configuration selects the embedded database. */
export function isEmbedded(source: ConfigText): boolean {
  const value = currentValue(source, `${POSTGRESQL}.embedded`);
  return value !== null && ['true', 'yes', 'on'].includes(scalarText(value) ?? '');
}

/** The existing keys that select the other kind of database than the answer, so that the answer is not written. */
function keysBlockingDatabaseAnswer(source: ConfigText, { database }: SetupAnswers): readonly SettingKey[] {
  if (database === undefined) return [];
  if (database.embedded === true) return answeredDatabaseKeys(source);
  return isEmbedded(source) ? [`${POSTGRESQL}.embedded`] : [];
}

/** The keys of the database that have a value in the configuration; none if it selects the embedded database. */
export function answeredDatabaseKeys(source: ConfigText): readonly SettingKey[] {
  if (isEmbedded(source)) return [];
  return DATABASE_KEYS.map((name) => `${POSTGRESQL}.${name}` as const).filter(
    (key) => keyState(source, key) === 'answered',
  );
}
