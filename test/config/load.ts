import { loadConfig } from '../../src/config/load.ts';
import type { LoadedConfig } from '../../src/config/load.ts';
import { ConfigError, NotConfiguredError } from '../../src/config/problem.ts';
import { Folder, MINIMAL } from './folder.ts';

type Environment = Record<string, string>;

/** Loads a text as the file `server.conf`. */
export function load(text: string, env: Environment = {}): LoadedConfig {
  using folder = new Folder();
  return loadConfig(folder.write('server.conf', text), { env });
}

/**
 * The error message for a text, without the folder, the columns and the quoted lines, which have a test of their own.
 * Checks the kind of the error too.
 */
export function failure(kind: typeof ConfigError | typeof NotConfiguredError, text: string, env: Environment = {}) {
  using folder = new Folder();
  const file = folder.write('server.conf', text);
  try {
    loadConfig(file, { env });
  } catch (error) {
    if (error instanceof kind) return withoutPositions(error.message, folder.path);
    throw error;
  }
  throw new Error('It loaded.');
}

/** Rewrites a message as `file:line: sentence`, without the folder, columns and quoted lines. */
export function withoutPositions(message: string, folder: string): string {
  const lines = message.replaceAll(`${folder}/`, '').split('\n');
  const sentences = lines.filter((line) => !line.startsWith('    '));
  return sentences.map((line) => line.replace(/^([^\s:]+:\d+):\d+: /, '$1: ')).join('\n');
}

/**
 * The only error in a configuration whose third line is this one, after the two lines that every configuration needs.
 */
export function refusal(line: string, env: Environment = {}): string {
  return failure(ConfigError, `${MINIMAL}${line}\n`, env);
}
