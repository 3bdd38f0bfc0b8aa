import { existsSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve } from 'node:path';
import type { Command } from 'commander';
import type { ServerKeyFiles } from '../../config/config.ts';
import type { FileOwner } from '../../config/durable-file.ts';
import { toHoconLiteral } from '../../config/edit.ts';
import { findConfigFile } from '../../config/tree.ts';
import { ConfigNotFoundError, NotConfiguredError } from '../../config/problem.ts';
import {
  checkServerKeyPair,
  ensureServerKeys,
  describePublicKeyFile,
  isReadableByOthers,
  serverKeyPaths,
} from '../../config/keys/server-key-files.ts';
import { MAX_KEYS_THAT_SIGN } from '../../model/server-key.ts';
import { nonRootOwnerOf } from '../core/privileges.ts';
import { type CommandContext, print, printError, printJson } from '../core/context.ts';
import { readDataDir, readSetting } from '../core/data-dir.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { formatFields, formatTable } from '../../../client/terminal/table.ts';
import { configFlag, withExamples, withJson } from '../core/options.ts';
import { addRotateServerSecret } from './rotate-secret.ts';

const SERVER_KEYS_SETTING = 'modules.security.server-keys';

interface GenerateOptions {
  readonly dir?: string;
  readonly json?: boolean;
}

export function addKeys(program: Command, context: CommandContext): void {
  const keys = program.command('keys').description("make and show the server's keys, and change its secret");
  withExamples(keys, ['klatch keys list', 'klatch keys generate --dir /etc/klatch/keys-2027']);
  const generateCommand = keys
    .command('generate')
    .description('make a new pair of server keys and print what to write into server.conf; it overwrites nothing')
    .option(
      '--dir <folder>',
      'where to put the two files, counted from the current folder (default: the folder of server.conf)',
    )
    .action((options: GenerateOptions, self: Command) => generateKeys(context, configFlag(self), options));
  withExamples(withJson(generateCommand), ['klatch keys generate --dir /etc/klatch/keys-2027', 'klatch keys generate']);
  const listCommand = keys
    .command('list')
    .description('show the server keys that are configured, which of them sign, and what is wrong with them')
    .action((options: { json?: boolean }, self: Command) => listKeys(context, configFlag(self), options));
  withExamples(withJson(listCommand), ['klatch keys list', 'klatch keys list --json']);
  addRotateServerSecret(keys, context);
}

function generateKeys(context: CommandContext, configOption: string | undefined, { dir, json }: GenerateOptions): void {
  const files = serverKeyPaths(resolve(dir ?? dirname(findConfigOf(context, configOption))));
  const file = findConfigIfAny(context, configOption);
  refuseExistingFiles(files);
  // The configured key pairs are read before anything is written: without them, the setting that this command shows
  // would be incomplete.
  const configuredPairs = file === null ? [] : keyPairsUnlessPlaceholder(context, file);
  const owner = serverOwnerIfRoot(context, file);
  ensureServerKeys(dirname(files.private), owner === null ? {} : { owner });
  const publicKeyInfo = describePublicKeyFile(files.public);
  if (publicKeyInfo === null) {
    const sentence = `${files.public} cannot be read back: remove it with ${files.private}, and repeat this`;
    throw new CommandError(exitCodes.cannotCreate, sentence);
  }
  const setting = renderSetting(file, [files, ...configuredPairs]);
  if (json === true) {
    printJson(context, { ...publicKeyInfo, files, setting });
    return;
  }
  const fields = formatFields([
    ...Object.entries(publicKeyInfo),
    ['private file', files.private],
    ['public file', files.public],
  ]);
  print(
    context,
    'Made a pair of server keys.',
    ...fields,
    '',
    signingAdvice(file, configuredPairs.length > 0),
    '',
    setting,
  );
}

/**
 * Advice on where to put the setting that this command shows. The setting begins with its full path, which would name
 * another key inside a section of server.conf. Only the end of the file is certainly outside of all sections.
 */
function signingAdvice(configFile: string | null, replacesOldKeys: boolean): string {
  const oldListAdvice = replacesOldKeys ? ' There they replace the list of before, which can be deleted.' : '';
  const place = `at the end of ${configFile ?? 'server.conf'}, outside all braces`;
  return `To sign with it, put these lines ${place}, and restart the server.${oldListAdvice}`;
}

function refuseExistingFiles(files: ServerKeyFiles): void {
  const [taken] = [files.private, files.public].filter((path) => existsSync(path));
  if (taken === undefined) return;
  const advice = 'give --dir a folder of its own for the new pair';
  throw new CommandError(exitCodes.cannotCreate, `${taken} is there already, and nothing was written: ${advice}`);
}

function findConfigOf({ env, programBinDir }: CommandContext, configOption: string | undefined): string {
  return findConfigFile({ configOption: configOption, env, programBinDir });
}

/**
 * The path of the configuration. Null if neither `--config` nor `KLATCH_CONFIG` names one, and none exists at the
 * default paths.
 */
function findConfigIfAny(context: CommandContext, configOption: string | undefined): string | null {
  const isNamed = configOption !== undefined || (context.env['KLATCH_CONFIG'] ?? '') !== '';
  try {
    return findConfigOf(context, configOption);
  } catch (error) {
    if (!isNamed && error instanceof ConfigNotFoundError) return null;
    throw error;
  }
}

/**
 * The owner of the data directory, to whom the private key must be given, since the server runs as this user. Null if
 * this process does not run as root, if there is no configuration or data directory, or if root owns the directory.
 */
function serverOwnerIfRoot({ env }: CommandContext, configFile: string | null): FileOwner | null {
  return process.geteuid?.() !== 0 || configFile === null ? null : nonRootOwnerOf(readDataDir(configFile, env));
}

function configuredKeyPairs({ env }: CommandContext, configFile: string): ServerKeyFiles[] {
  const pairs = readSetting(configFile, env, SERVER_KEYS_SETTING) ?? [];
  return pairs.map((pair) => ({ public: pair.public.path, private: pair.private.path }));
}

/**
 * The configured pairs of server keys. Empty if the setting still is the template's placeholder, which the new pair
 * replaces.
 */
function keyPairsUnlessPlaceholder(context: CommandContext, configFile: string): ServerKeyFiles[] {
  try {
    return configuredKeyPairs(context, configFile);
  } catch (error) {
    if (error instanceof NotConfiguredError) return [];
    throw error;
  }
}

/**
 * The text of the setting for server keys with these key pairs, in their order. The caller puts the new pair first,
 * because the first pairs sign. The old pairs stay, for receivers that only have an old public key.
 */
function renderSetting(configFile: string | null, pairs: readonly ServerKeyFiles[]): string {
  const pathLiteral = (path: string): string =>
    toHoconLiteral(configFile === null ? path : relativeToConfig(configFile, path));
  const lines = pairs.map(
    (pair) => `  { public = ${pathLiteral(pair.public)}, private = ${pathLiteral(pair.private)} }`,
  );
  return [`${SERVER_KEYS_SETTING} = [`, ...lines, ']'].join('\n');
}

/**
 * Makes the path of a file below the configuration's folder relative, so that the folder can be moved as a whole. Other
 * paths stay.
 */
function relativeToConfig(configFile: string, path: string): string {
  const relativePath = relative(dirname(resolve(configFile)), path);
  return relativePath.startsWith('..') || isAbsolute(relativePath) ? path : relativePath;
}

interface ListedKey {
  readonly id: string | null;
  readonly public: string | null;
  readonly files: ServerKeyFiles;
  readonly signs: boolean;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

function listKeys(context: CommandContext, configOption: string | undefined, { json }: { json?: boolean }): void {
  const file = findConfigOf(context, configOption);
  const keys = configuredKeyPairs(context, file).map(inspectKeyPair);
  if (json === true) printJson(context, { file, keys });
  else if (keys.length === 0) print(context, 'There are no server keys: "klatch keys generate" makes a pair.');
  else print(context, ...keyLines(keys));
  const found = keys.flatMap(({ problems }) => problems);
  for (const warning of keys.flatMap(({ warnings }) => warnings)) printError(context, `warning: ${warning}`);
  if (found.length === 0) return;
  const what = `as this user the server could not start with these keys (${SERVER_KEYS_SETTING} in ${file})`;
  throw new CommandError(exitCodes.notConfigured, [what, ...(json === true ? [] : found)].join('\n'));
}

function inspectKeyPair(files: ServerKeyFiles, signingOrder: number): ListedKey {
  const publicKeyInfo = describePublicKeyFile(files.public);
  const problems = checkServerKeyPair(files).map(({ sentence }) => sentence);
  const isOpen = isReadableByOthers(files.private);
  const warnings = isOpen ? [`${files.private} can be read by every user of this machine: chmod o-r`] : [];
  const signs = signingOrder < MAX_KEYS_THAT_SIGN && problems.length === 0;
  return { id: publicKeyInfo?.id ?? null, public: publicKeyInfo?.public ?? null, files, signs, problems, warnings };
}

function keyLines(keys: readonly ListedKey[]): string[] {
  const describeUse = ({ signs, problems }: ListedKey): string => {
    if (problems.length > 0) return 'broken';
    return signs ? 'signs' : `only shown (${MAX_KEYS_THAT_SIGN} sign)`;
  };
  const rows = keys.map((key) => [describeUse(key), key.id ?? '-', key.public ?? '-', key.files.private]);
  return formatTable(['use', 'id', 'public key', 'private file'], rows);
}
