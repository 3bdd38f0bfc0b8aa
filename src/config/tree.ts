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

/** The name of reference.conf in messages; no file has this name by accident. */
export const REFERENCE_NAME = '(reference.conf)';

/** The inputs of the search for the configuration file. */
interface FindConfigFileOptions {
  /** Value of `--config`. */
  readonly configOption?: string | undefined;
  readonly env: Environment;
  /** Folder of the program: `<dir>/bin` of `<dir>/bin/klatch`. */
  readonly programBinDir: string;
}

/**
 * The configuration file to read: that of `--config`, of `$KLATCH_CONFIG`, `conf/server.conf` beside the program's
 * folder, then `/etc/klatch/server.conf`. A file that the option or the variable names must exist: no other file
 * replaces it. Throws ConfigNotFoundError with the searched paths.
 */
export function findConfigFile({ configOption: flag, env, programBinDir }: FindConfigFileOptions): string {
  const named = flag ?? (env['KLATCH_CONFIG'] === '' ? undefined : env['KLATCH_CONFIG']);
  const places =
    named === undefined ? [join(programBinDir, '../conf/server.conf'), '/etc/klatch/server.conf'] : [named];
  const found = places.find(fileMayExist);
  if (found === undefined) throw new ConfigNotFoundError(places);
  return found;
}

/** False only if no file exists. A file in an inaccessible folder is not skipped: reading it reports the problem. */
function fileMayExist(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // statSync answers undefined for ENOENT and ENOTDIR: any other error means that the path exists or is not
    // accessible.
    if (typeof error === 'object' && error !== null && 'code' in error) return true;
    throw error;
  }
}

/**
 * The files of a configuration, server.conf first, then its includes; throws ConfigError as `readTreeFromSources` does.
 */
export function listConfigurationFiles(file: string, env: Environment): string[] {
  const files = new Set<string>();
  const sources = [{ name: REFERENCE_NAME, text: readAsset('config/reference.conf') }, { path: file }];
  readTreeFromSources(sources, env, { onFile: (path) => files.add(resolve(path)) });
  return [...files];
}

/** Reads sources; syntax errors are thrown as a ConfigError, which does not quote values that may be secret. */
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

/** Whether a text is the name of a Klatch variable, which no password looks like. */
function isKlatchVariableName(text: string): boolean {
  return /^KLATCH_[A-Z_]+$/.test(text);
}
