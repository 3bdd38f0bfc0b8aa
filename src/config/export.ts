import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative } from 'node:path';
import { syncFolder, writeNewFile } from './durable-file.ts';
import type { Config } from './config.ts';
import { toHoconLiteral } from './edit.ts';
import type { LoadedConfig } from './load.ts';
import { listConfigurationFiles, type Environment } from './tree.ts';
import { isJson } from './keys/google-key.ts';
import { settingEntries, type SettingKey } from './schema.ts';
import { describeConfig, HIDDEN, type ShownValue, type ShownSetting } from './show.ts';
import type { ValueType } from './value-types.ts';

type ConfigurationFileKind = 'configuration' | 'public-key' | 'private-key';

/** A file of a configuration: `name` is its unique name in the archive, `path` its original path. */
interface ConfigurationFileWithoutContent {
  readonly name: string;
  readonly path: string;
  readonly kind: ConfigurationFileKind;
}

/** The files of a configuration that a backup contains. */
interface ExportedConfiguration {
  /** The exported files; server.conf is the first one. */
  readonly files: readonly (ConfigurationFileWithoutContent & { readonly content: Buffer })[];
  /** The keys and files that are left out because they are secret. */
  readonly missing: readonly string[];
}

const FILE_MODES: Readonly<Record<ConfigurationFileKind, number>> = {
  configuration: 0o640,
  'public-key': 0o644,
  'private-key': 0o600,
};
/** True if values of this type are paths or contain paths. */
const holdsPath = ({ isPath: path, items, fields }: ValueType<unknown>): boolean =>
  path || (items !== null && holdsPath(items)) || Object.values(fields ?? {}).some(({ kind }) => holdsPath(kind));
const PATH_SETTINGS = new Set(settingEntries().flatMap(([key, { kind }]) => (holdsPath(kind) ? [key] : [])));
/** The folder for restored files whose original path was outside of the configuration's folder. */
const RESTORED_OUTSIDE_FILES_FOLDER = 'outside';

/**
 * Reads the files of a configuration for a backup. With `secrets`, they are unchanged. Without `secrets`, private keys
 * are left out. server.conf is then generated from all settings that differ from the defaults, with placeholders for
 * secrets. It is not the original without secrets, since a comment may contain an old password, or a later line may
 * override one. Throws the errors of reading the files.
 */
export function exportConfiguration(
  { config, root }: LoadedConfig,
  options: { readonly env: Environment; readonly secrets: boolean },
): ExportedConfiguration {
  const folder = dirname(config.file);
  const referenced = referencedFiles(config);
  if (options.secrets) {
    const own = listConfigurationFiles(config.file, options.env).map((path) => ({
      path,
      kind: 'configuration' as const,
    }));
    const files = [...own, ...referenced].map((file) => ({ ...file, content: readFileSync(file.path) }));
    return { files: withArchiveNames(files), missing: [] };
  }
  const settings = describeConfig(root).filter(({ source, value }) => source !== 'default' && value !== null);
  const text = Buffer.from(renderSettings(settings, folder));
  const open = referenced.filter(({ kind }) => kind !== 'private-key');
  const files = [
    { path: config.file, kind: 'configuration' as const, content: text },
    ...open.map((file) => ({ ...file, content: readFileSync(file.path) })),
  ];
  const closed = referenced.filter(({ kind }) => kind === 'private-key').map(({ path }) => path);
  return {
    files: withArchiveNames(files),
    missing: [...settings.filter(holdsSecret).map(({ key }) => key), ...closed],
  };
}

/**
 * The path to which a file was restored. `from`: its original path, if that was outside of the configuration's folder;
 * else null.
 */
interface WrittenPathAndOrigin {
  readonly file: string;
  readonly from: string | null;
}

/**
 * Writes the files of a configuration into a folder, which it creates if necessary, and syncs each file. Never
 * overwrites a file: if some exist already, writes nothing and returns their paths as `blockingPaths`.
 */
export function writeConfigurationFiles(
  files: readonly (ConfigurationFileWithoutContent & { readonly content: Buffer })[],
  folder: string,
): { readonly placed: readonly WrittenPathAndOrigin[]; readonly blockingPaths: readonly string[] } {
  const places = files.map((file, index) => {
    const relativePath = index === 0 ? 'server.conf' : relative(dirname(files[0]!.path), file.path);
    const isOutside = relativePath.startsWith('..') || isAbsolute(relativePath) || relativePath === '';
    const path = isOutside
      ? join(folder, RESTORED_OUTSIDE_FILES_FOLDER, basename(file.name))
      : join(folder, relativePath);
    return { ...file, target: path, from: isOutside ? file.path : null };
  });
  const blockingPaths = places.map(({ target }) => target).filter((path) => existsSync(path));
  if (blockingPaths.length > 0) return { placed: [], blockingPaths };
  for (const { target, content, kind } of places) {
    mkdirSync(dirname(target), { recursive: true, mode: 0o750 });
    writeNewFile(target, content, { mode: FILE_MODES[kind] });
    syncFolder(dirname(target));
  }
  return { placed: places.map(({ target: file, from }) => ({ file, from })), blockingPaths };
}

/** The files that a configuration names, each once. Without them the server would not start. */
function referencedFiles(config: Config): Pick<ConfigurationFileWithoutContent, 'path' | 'kind'>[] {
  const { serverSigningKeys: serverKeys, googlePush, applePush, smtp } = config;
  const databaseTls = config.postgresql.tls;
  const tls = config.endpoints.flatMap((endpoint) => endpoint.tls ?? []);
  const paths: Readonly<Record<ConfigurationFileKind, readonly (string | null | undefined)[]>> = {
    configuration: [smtp?.emailTemplatePath],
    'public-key': [
      ...serverKeys.map((pair) => pair.public),
      ...tls.map((pair) => pair.certificate),
      applePush.extraAppleCaFile,
      databaseTls?.databaseCaFile,
      databaseTls?.certificate,
    ],
    'private-key': [
      ...serverKeys.map((pair) => pair.private),
      ...tls.map((pair) => pair.key),
      databaseTls?.key,
      ...googlePush.keys.map(({ key }) => key).filter((key) => !isJson(key)),
      ...applePush.keys.map(({ path }) => path),
    ],
  };
  const files = new Map<string, Pick<ConfigurationFileWithoutContent, 'path' | 'kind'>>();
  for (const kind of ['configuration', 'public-key', 'private-key'] as const) {
    // Private files are added last. So a file that the configuration names both as a public and as a private one is
    // exported as private.
    for (const path of paths[kind]) if (typeof path === 'string') files.set(path, { path, kind });
  }
  return [...files.values()];
}

/** Adds names for the archive, which are unique, short and safe. */
function withArchiveNames<T extends { readonly path: string }>(files: readonly T[]): (T & { name: string })[] {
  return files.map((file, index) => {
    const safeName = basename(file.path)
      .replaceAll(/[^A-Za-z0-9._-]/g, '_')
      .slice(-60);
    return { ...file, name: index === 0 ? 'config/server.conf' : `config/${index}-${safeName}` };
  });
}

function renderSettings(settings: readonly ShownSetting[], folder: string): string {
  const lines = settings.map(({ key, value }) => {
    const shown = PATH_SETTINGS.has(key) ? relativizePathsBelow(folder, value) : value;
    return `${key} = ${formatHocon(shown, secretPlaceholder(key))}\n`;
  });
  return [
    '# The settings that were in force when the backup was taken, without its secrets: put them in the place of what\n',
    '# stands in <ANGLE BRACKETS>. Klatch does not start before.\n',
    ...lines,
  ].join('');
}

/**
 * Makes paths below the configuration's folder relative to server.conf again, so that the folder can be moved as a
 * whole.
 */
function relativizePathsBelow(folder: string, value: ShownValue): ShownValue {
  if (typeof value === 'string') return value.startsWith(`${folder}/`) ? relative(folder, value) : value;
  if (Array.isArray(value)) return value.map((item: ShownValue) => relativizePathsBelow(folder, item));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, relativizePathsBelow(folder, field)]));
}

function secretPlaceholder(key: SettingKey): string {
  if (key === 'secret') return '<SERVER_SECRET>';
  if (key === 'services.postgresql.password') return '<DB_PASSWORD>';
  return `<${key.split('.').at(-1)!.replaceAll('-', '_').toUpperCase()}>`;
}

function formatHocon(value: ShownValue, placeholder: string): string {
  if (value === HIDDEN) return toHoconLiteral(placeholder);
  if (typeof value === 'string') return toHoconLiteral(value);
  if (Array.isArray(value)) return `[${value.map((item: ShownValue) => formatHocon(item, placeholder)).join(', ')}]`;
  if (value === null || typeof value !== 'object') return String(value);
  const fields = Object.entries(value).map(
    ([name, field]) => `${toHoconLiteral(name)} = ${formatHocon(field, placeholder)}`,
  );
  return `{ ${fields.join(', ')} }`;
}

function holdsSecret({ value }: ShownSetting): boolean {
  const holds = (each: ShownValue): boolean =>
    each === HIDDEN || (each !== null && typeof each === 'object' && Object.values(each).some((field) => holds(field)));
  return holds(value);
}
