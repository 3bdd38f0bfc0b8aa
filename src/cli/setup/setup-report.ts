import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readAsset } from '../../assets.ts';
import { loadConfig } from '../../config/load.ts';
import { readTreeFromSources, REFERENCE_NAME } from '../../config/tree.ts';
import type { SettingKey } from '../../config/schema.ts';
import { describeConfig, formatConfig } from '../../config/show.ts';
import { thisInstallation, type Installation } from '../../installation.ts';
import { SYSTEM_CONFIG, type ConfigureResult } from './configure.ts';
import { type CommandContext, print, printError, printJson } from '../core/context.ts';
import type { LocalDatabase } from './setup-local.ts';

/** The files with which the service of the package is started. One of them exists if the package is installed. */
const SERVICE_FILES = ['/etc/init.d/klatch', '/lib/systemd/system/klatch.service'];

/**
 * Prints what setup has done, and the next step. Throws if a value in the configuration is still missing or invalid.
 */
export function reportSetup(
  context: CommandContext,
  result: ConfigureResult,
  { json, local }: { json: boolean | undefined; local: LocalDatabase | null },
): void {
  const { file, set, kept, keysMadeIn } = result;
  if (json === true) {
    const { password: _, ...database } = local?.made ?? { password: '' };
    printJson(context, { ...result, ...(local !== null && { database }), next: nextStep(context, file) });
  } else {
    const settings = describeConfig(readEffectiveTree(file, context));
    const settingLines = (keys: readonly SettingKey[]): string =>
      formatConfig(settings.filter(({ key }) => keys.includes(key)))
        .replace(/^/gm, '  ')
        .trimEnd();
    if (local !== null) print(context, ...localDatabaseLines(local));
    if (set.length === 0) print(context, `Nothing to write: ${file} has all these answers already.`);
    else print(context, `Wrote to ${file}:`, settingLines(set));
    if (kept.length > 0) print(context, 'Kept, since these have an answer already:', settingLines(kept));
    if (keysMadeIn !== null) print(context, `Made a pair of server keys in ${keysMadeIn}.`);
  }
  for (const warning of loadConfig(file, { env: context.env }).warnings) printError(context, `warning: ${warning}`);
  if (json === true) return;
  print(context, `Next: ${nextStep(context, file)}`);
  print(context, `Then open the address that this prints: ${adminLinkCommand(context, file)}`);
}

const DATABASE_ROLE_VERBS = { made: 'Made', kept: 'Kept', 'new password': 'Gave a new password to' } as const;

function localDatabaseLines({ made }: LocalDatabase): string[] {
  const { label, version, user, db, role, database, host, port } = made;
  return [
    `${DATABASE_ROLE_VERBS[role]} the role "${user}" and ${database} the database "${db}" in PostgreSQL ${version} (${label});`,
    `a login over ${host.startsWith('/') ? host : `${host}:${port}`} works.`,
  ];
}

/** Facts about the machine. Absent ones are determined from the system. */
interface HostFacts {
  readonly installation?: Installation;
  readonly isServiceInstalled?: boolean;
}

/** What the person has to do next, as a sentence that ends with a command. */
export function nextStep(
  { programBinDir }: Pick<CommandContext, 'programBinDir'>,
  configFile: string,
  hostFacts: HostFacts = {},
): string {
  const { kind, command } = hostFacts.installation ?? thisInstallation();
  const isServiceInstalled = hostFacts.isServiceInstalled ?? SERVICE_FILES.some((path) => existsSync(path));
  if (configFile === SYSTEM_CONFIG && isServiceInstalled) return 'start the server: sudo service klatch start';
  const flag = configFlagFor(programBinDir, configFile);
  if (kind === 'archive') return `start the server: nohup ${shellWord(command)}${flag} >> klatch.log 2>&1 &`;
  return `start the server with "klatch serve${flag}".`;
}

/** The command that creates the sign-in link of the first administrator. */
function adminLinkCommand({ programBinDir }: Pick<CommandContext, 'programBinDir'>, configFile: string): string {
  const { kind, command } = thisInstallation();
  const program = configFile === SYSTEM_CONFIG ? 'sudo klatch' : kind === 'archive' ? shellWord(command) : 'klatch';
  return `${program} admin-link${configFlagFor(programBinDir, configFile)}`;
}

function configFlagFor(programBinDir: string, configFile: string): string {
  const isFoundByDefault = configFile === SYSTEM_CONFIG || configFile === join(programBinDir, '../conf/server.conf');
  return isFoundByDefault ? '' : ` --config ${shellWord(configFile)}`;
}

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function readEffectiveTree(file: string, { env }: CommandContext): ReturnType<typeof readTreeFromSources> {
  return readTreeFromSources([{ name: REFERENCE_NAME, text: readAsset('config/reference.conf') }, { path: file }], env);
}
