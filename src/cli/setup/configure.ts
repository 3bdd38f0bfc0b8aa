import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { readAsset } from '../../assets.ts';
import { writeConfig, type Owner } from '../../config/durable-file.ts';
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

/** The configuration of the package's service. */
export const SYSTEM_CONFIG = '/etc/klatch/server.conf';
/** Whom that service runs as. */
const SERVICE_USER = 'klatch';

const CONFIG_TEMPLATE = 'etc/klatch/server.conf.template';
const SERVER_KEYS = 'modules.security.server-keys';
/** As `ensureServerKeys` names them, relative to the configuration: the folder can be moved as a whole. */
const SERVER_KEY_FILES = { public: 'server-key.public.pem', private: 'server-key.private.pem' };

/** What people are asked for; the secret, the server keys and those of web push are made here. */
export type Answers = Omit<SetupAnswers, 'secret' | 'serverKeys' | 'webPushKeys'>;

/** What `configure` did. */
export interface ConfigureResult extends Omit<SetupResult, 'text'> {
  readonly file: string;
  /** Folder of a pair of server keys made now; null: there was one. */
  readonly keysMadeIn: string | null;
}

interface ConfigureOptions {
  /** What the configuration's substitutions fall back to. */
  readonly env: Environment;
  /** Comments to put above keys that are written now. */
  readonly notes?: Partial<Record<SettingKey, string>>;
}

/** The configuration as it is, or the template for a new one. */
export function readConfigOrTemplate(file: string): ConfigText {
  return { file, text: existsSync(file) ? readFileSync(file, 'utf8') : readAsset(CONFIG_TEMPLATE) };
}

/**
 * Completes a configuration, or makes one: a secret, server keys beside it, keys of web push, and the answers. What has an answer stays.
 * `file` is absolute. Throws ConfigError for answers that the server would refuse, before anything is written, and the
 * system's errors.
 */
export function configure(file: string, answers: Answers, { env, notes = {} }: ConfigureOptions): ConfigureResult {
  const source = readConfigOrTemplate(file);
  const made = { secret: createServerSecret(), serverKeys: SERVER_KEY_FILES, webPushKeys: createWebPushKeys() };
  const result = applyAnswers(source, { ...answers, ...made });
  const { set, kept } = result;
  if (set.length === 0) return { file, set, kept, keysMadeIn: null };
  const folder = dirname(file);
  mkdirSync(folder, { recursive: true, mode: 0o750 });
  const server = serverOwnerIfRoot(source, answers, env);
  // Before the configuration that names them: a run that is cut off leaves files that the next run takes.
  const keys = set.includes(SERVER_KEYS) ? ensureServerKeys(folder, server === null ? {} : { owner: server }) : null;
  const isNew = !existsSync(file);
  // The server reads its configuration and has no business writing it, unless the whole folder is its user's.
  const uid = statSync(folder).uid === server?.uid ? server.uid : 0;
  const owner = server !== null && isNew ? { owner: { uid, gid: server.gid } } : {};
  writeConfig(file, insertNotes(result, notes), owner);
  return { file, set, kept, keysMadeIn: keys?.created === true ? folder : null };
}

function insertNotes({ text, set }: SetupResult, notes: Partial<Record<SettingKey, string>>): string {
  const lines = scanLines(text);
  return text
    .split('\n')
    .flatMap((line, index) => {
      const { kind, path, indent } = lines[index]!;
      const key = set.find((each) => each === path);
      const note = kind === 'key' && key !== undefined ? notes[key] : undefined;
      return note === undefined ? [line] : [`${indent}# ${note}`, line];
    })
    .join('\n');
}

/**
 * Whom the server runs as, if that is not whom we are: root sets up, and the owner of the data directory (or who is to
 * make it) has to read the result. Null where it cannot be told or makes no difference.
 */
export function serverOwnerIfRoot(source: ConfigText, { dataDir }: Answers, env: Environment): Owner | null {
  if (process.geteuid?.() !== 0) return null;
  const given = dataDir !== undefined && keyState(source, 'data-dir') === 'open' ? dataDir : null;
  const folder = given === null ? readDataDir(source.file, env) : resolve(dirname(source.file), given);
  if (source.file === SYSTEM_CONFIG && !existsSync(folder)) return findServiceUser();
  return nonRootOwnerOf(folderOrNearestExistingAncestor(folder));
}

/** The folder itself, or the one above it in which it could be made. */
export function folderOrNearestExistingAncestor(path: string): string {
  const above = dirname(path);
  return existsSync(path) || above === path ? path : folderOrNearestExistingAncestor(above);
}

function findServiceUser(): Owner | null {
  const found = readPasswd().find(({ name }) => name === SERVICE_USER);
  return found === undefined ? null : { uid: found.uid, gid: found.gid };
}
