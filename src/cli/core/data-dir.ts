import { existsSync } from 'node:fs';
import { readAsset } from '../../assets.ts';
import { findConfigFile, readTreeFromSources, REFERENCE_NAME } from '../../config/tree.ts';
import { ConfigError, NotConfiguredError } from '../../config/problem.ts';
import { settingEntries, type SettingKey, type Settings } from '../../config/schema.ts';
import { readSettings } from '../../config/settings.ts';
import type { CommandContext } from './context.ts';

/**
 * The data directory that the configuration `file` sets, or the default if the file does not exist. Checks no other
 * key: a command must find the running server while another key is being edited, and for a user who may not read the
 * server's private keys. Throws ConfigError or NotConfiguredError only for problems of this key.
 */
export function readDataDir(file: string, env: CommandContext['env']): string {
  return readSetting(file, env, 'data-dir').path;
}

/**
 * The value of one key of a configuration, even if other keys have problems; the value in reference.conf if `file` does
 * not exist.
 */
export function readSetting<Key extends SettingKey>(file: string, env: CommandContext['env'], key: Key): Settings[Key] {
  const reference = { name: REFERENCE_NAME, text: readAsset('config/reference.conf') };
  const tree = readTreeFromSources(existsSync(file) ? [reference, { path: file }] : [reference], env);
  // Only this key is read: all keys would cost a command 8 ms.
  const entries = settingEntries().filter(([each]) => each === key);
  const { settings, missing, problems } = readSettings(tree, file, entries);
  const value: Settings[Key] | undefined = settings[key];
  const isOfThisKey = (problem: { key: string }): boolean => problem.key === key || problem.key.startsWith(`${key}[`);
  if (missing.some(isOfThisKey)) throw new NotConfiguredError(missing.filter(isOfThisKey));
  if (value === undefined) throw new ConfigError(problems.filter(isOfThisKey));
  return value;
}

/** The data directory of the configuration that the command line selects; `configOption` is the value of `--config`. */
export function configuredDataDir(context: CommandContext, configOption: string | undefined): string {
  return readDataDir(
    findConfigFile({ configOption: configOption, env: context.env, programBinDir: context.programBinDir }),
    context.env,
  );
}
