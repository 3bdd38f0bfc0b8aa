import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readAsset } from '../assets.ts';
import {
  HoconError,
  loadHocon,
  renderSentence,
  type LoadOptions,
  type ObjectValue,
  type Source,
} from '../../packages/hocon/src/index.ts';
import { redactAndExcerpt } from './excerpt.ts';
import { ConfigError, ConfigNotFoundError } from './problem.ts';
import { isMadeOfKeyWords, ConfigSourceFile } from './public-text.ts';

/** The environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The name of reference.conf in messages. Because of the brackets, hardly any file has the same name. */
export const REFERENCE_NAME = '(reference.conf)';

/** What the search for the configuration file depends on. */
interface FindConfigFileOptions {
  /** The value of the option `--config`. */
  readonly configOption?: string | undefined;
  readonly env: Environment;
  /** The folder of the program: `<dir>/bin` for `<dir>/bin/klatch`. */
  readonly programBinDir: string;
}

/**
 * Finds the configuration file: the one that `--config` or else `$KLATCH_CONFIG` names. If neither is given,
 * `conf/server.conf` beside the program's folder, then `/etc/klatch/server.conf`. Throws ConfigNotFoundError with the
 * searched paths; if a named file does not exist, no other one is searched for.
 */
export function findConfigFile({ configOption: flag, env, programBinDir }: FindConfigFileOptions): string {
  const named = flag ?? (env['KLATCH_CONFIG'] === '' ? undefined : env['KLATCH_CONFIG']);
  const searchedPaths =
    named === undefined ? [join(programBinDir, '../conf/server.conf'), '/etc/klatch/server.conf'] : [named];
  const found = searchedPaths.find(fileMayExist);
  if (found === undefined) throw new ConfigNotFoundError(searchedPaths);
  return found;
}

/**
 * False only if the file certainly does not exist. A file in an inaccessible folder is not skipped, so that its read
 * reports the problem.
 */
function fileMayExist(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // statSync returns undefined for ENOENT and ENOTDIR. So any error means that the path exists or is not accessible.
    if (typeof error === 'object' && error !== null && 'code' in error) return true;
    throw error;
  }
}

/**
 * The paths of a configuration's files: server.conf first, then its includes. Throws ConfigError as
 * `readTreeFromSources` does.
 */
export function listConfigurationFiles(file: string, env: Environment): string[] {
  const files = new Set<string>();
  const sources = [{ name: REFERENCE_NAME, text: readAsset('config/reference.conf') }, { path: file }];
  readTreeFromSources(sources, env, { onFile: (path) => files.add(resolve(path)) });
  return [...files];
}

/**
 * Parses sources into one tree; later sources override earlier ones. Throws a ConfigError for syntax errors, which does
 * not quote values that may be secret.
 */
export function readTreeFromSources(
  sources: readonly Source[],
  env: Environment,
  { onFile, onWarning }: Pick<LoadOptions, 'onFile' | 'onWarning'> = {},
): ObjectValue {
  const files = new Map<string, ConfigSourceFile>();
  for (const source of sources) if ('text' in source) files.set(source.name, new ConfigSourceFile(source.text));
  try {
    return loadHocon(sources, {
      env,
      ...(onWarning === undefined ? {} : { onWarning }),
      onFile: (path, text) => {
        files.set(path, new ConfigSourceFile(text));
        onFile?.(path, text);
      },
    });
  } catch (error) {
    if (!(error instanceof HoconError)) throw error;
    throw new ConfigError(
      error.problems.map(({ origin, sentence }) => {
        const { file, line, column } = origin;
        const isPublicLine = files.get(file)?.isPublicLine(line) === true;
        const shown = renderSentence(
          sentence,
          (text) => isPublicLine || isMadeOfKeyWords(text) || isKlatchVariableName(text),
        );
        return redactAndExcerpt({ file, line, column, key: '', sentence: shown }, files);
      }),
    );
  }
}

/** True if a text has the form of the name of one of Klatch's environment variables. No password looks like that. */
function isKlatchVariableName(text: string): boolean {
  return /^KLATCH_[A-Z_]+$/.test(text);
}
