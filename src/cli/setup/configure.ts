import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { readAsset } from '../../assets.ts';
import { writeConfig, type FileOwner } from '../../config/durable-file.ts';
import { keyState, type ConfigText } from '../../config/edit.ts';
import type { Environment } from '../../config/tree.ts';
import { scanLines } from '../../config/line-scanner.ts';
import type { SettingKey } from '../../config/schema.ts';
import { ensureServerKeys } from '../../config/keys/server-key-files.ts';
import { applyAnswers, createServerSecret, type SetupAnswers, type SetupResult } from '../../config/setup.ts';
import { createWebPushKeys } from '../../config/keys/web-push-keys.ts';
import { readPasswd } from '../../data-dir/passwd.ts';
import { readDataDir } from '../core/data-dir.ts';
import { nonRootOwnerOf } from '../core/privileges.ts';

/** The path of the configuration of the service that the package installs. */
export const SYSTEM_CONFIG = '/etc/klatch/server.conf';
/** The user that the service runs as. */
const SERVICE_USER = 'klatch';

const CONFIG_TEMPLATE = 'etc/klatch/server.conf.template';
const SERVER_KEYS_SETTING = 'modules.security.server-keys';
/**
 * The names of the key files that `ensureServerKeys` creates. They are relative to the configuration's folder, so that
 * the folder can be moved as a whole.
 */
const SERVER_KEY_FILES = { public: 'server-key.public.pem', private: 'server-key.private.pem' };

/**
 * The answers of a person, by options or at the prompt. `configure` itself creates the secret, the server keys and the
 * keys of web push.
 */
export type Answers = Omit<SetupAnswers, 'secret' | 'serverKeys' | 'webPushKeys'>;

export interface ConfigureResult extends Omit<SetupResult, 'text'> {
  readonly file: string;
  /** The folder in which this call created server keys; null: it created none. */
  readonly keysMadeIn: string | null;
}

interface ConfigureOptions {
  /** The environment variables, for substitutions (`${NAME}`) that the configuration itself does not define. */
  readonly env: Environment;
  /** Comments that are written above keys which this call adds to the configuration. */
  readonly notes?: Partial<Record<SettingKey, string>>;
}

/** Reads the configuration, or the template for a new one if the file does not exist. */
export function readConfigOrTemplate(file: string): ConfigText {
  return { file, text: existsSync(file) ? readFileSync(file, 'utf8') : readAsset(CONFIG_TEMPLATE) };
}

/**
 * Creates a configuration, or completes an existing one, whose values stay. Adds the answers, a secret, keys of web
 * push, and server keys in files beside the configuration. `file` must be absolute. Throws ConfigError, before anything
 * is written, for answers that the server would refuse. Throws the system's error if a file cannot be written.
 */
export function configure(file: string, answers: Answers, { env, notes = {} }: ConfigureOptions): ConfigureResult {
  const source = readConfigOrTemplate(file);
  const generatedAnswers = {
    secret: createServerSecret(),
    serverKeys: SERVER_KEY_FILES,
    webPushKeys: createWebPushKeys(),
  };
  const result = applyAnswers(source, { ...answers, ...generatedAnswers });
  const { set, kept } = result;
  if (set.length === 0) return { file, set, kept, keysMadeIn: null };
  const folder = dirname(file);
  mkdirSync(folder, { recursive: true, mode: 0o750 });
  const serverOwner = serverOwnerIfRoot(source, answers, env);
  // The key files are written before the configuration that names them. If this run is interrupted in between, the next
  // one uses the same files.
  const keys = set.includes(SERVER_KEYS_SETTING)
    ? ensureServerKeys(folder, serverOwner === null ? {} : { owner: serverOwner })
    : null;
  const isNew = !existsSync(file);
  // The server must be able to read its configuration, but not to write it, unless its user owns the whole folder.
  const uid = statSync(folder).uid === serverOwner?.uid ? serverOwner.uid : 0;
  const ownerOption = serverOwner !== null && isNew ? { owner: { uid, gid: serverOwner.gid } } : {};
  writeConfig(file, insertNotes(result, notes), ownerOption);
  return { file, set, kept, keysMadeIn: keys?.created === true ? folder : null };
}

function insertNotes({ text, set }: SetupResult, notes: Partial<Record<SettingKey, string>>): string {
  const lines = scanLines(text);
  return text
    .split('\n')
    .flatMap((line, index) => {
      const { kind, keyPath: path, indent } = lines[index]!;
      const key = set.find((each) => each === path);
      const note = kind === 'key' && key !== undefined ? notes[key] : undefined;
      return note === undefined ? [line] : [`${indent}# ${note}`, line];
    })
    .join('\n');
}

/**
 * The user as whom the server runs, and who must be able to read the configuration. That is the owner of the data
 * directory, or of the nearest existing folder above it. If the data directory of the service does not exist yet, it is
 * the user of the service. Null if this process does not run as root, or if that user is root or unknown.
 */
export function serverOwnerIfRoot(source: ConfigText, { dataDir }: Answers, env: Environment): FileOwner | null {
  if (process.geteuid?.() !== 0) return null;
  const givenDataDir = dataDir !== undefined && keyState(source, 'data-dir') === 'open' ? dataDir : null;
  const folder = givenDataDir === null ? readDataDir(source.file, env) : resolve(dirname(source.file), givenDataDir);
  if (source.file === SYSTEM_CONFIG && !existsSync(folder)) return findServiceUser();
  return nonRootOwnerOf(folderOrNearestExistingAncestor(folder));
}

/** The path itself if it exists, otherwise the nearest existing folder above it. */
export function folderOrNearestExistingAncestor(path: string): string {
  const parent = dirname(path);
  return existsSync(path) || parent === path ? path : folderOrNearestExistingAncestor(parent);
}

function findServiceUser(): FileOwner | null {
  const found = readPasswd().find(({ name }) => name === SERVICE_USER);
  return found === undefined ? null : { uid: found.uid, gid: found.gid };
}
