import { existsSync } from 'node:fs';
import { readAsset } from '../assets.ts';
import { findConfigFile, readTree, REFERENCE } from '../config/load.ts';
import { ConfigError, NotConfiguredError } from '../config/problem.ts';
import { readSettings } from '../config/settings.ts';
import type { CommandContext } from './context.ts';

/**
 * The data directory that a configuration names, or the default where there is no such file. It is all it takes to find
 * the running server: a command must work while another key is being edited, and for users who may not read the
 * server's private keys. Throws ConfigError or NotConfiguredError for what concerns this key alone.
 */
export function readDataDir(file: string, env: CommandContext['env']): string {
  const reference = { name: REFERENCE, text: readAsset('config/reference.conf') };
  const tree = readTree(existsSync(file) ? [reference, { path: file }] : [reference], env);
  const { settings, missing, problems } = readSettings(tree, file);
  const dataDir = settings['data-dir'];
  if (dataDir !== undefined) return dataDir.path;
  const ours = ({ key }: { key: string }): boolean => key === 'data-dir';
  if (missing.some(ours)) throw new NotConfiguredError(missing.filter(ours));
  throw new ConfigError(problems.filter(ours));
}

/** The data directory of the configuration that a command line means. */
export function dataDirOf(context: CommandContext, flag: string | undefined): string {
  return readDataDir(findConfigFile({ flag, env: context.env, programDir: context.programDir }), context.env);
}
