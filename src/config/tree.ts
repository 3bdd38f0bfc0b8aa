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

/** The environment as `process.env` has it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The name of reference.conf in messages; no file can be named so by accident. */
export const REFERENCE_NAME = '(reference.conf)';

/** Where a configuration file may be named or found. */
interface FindConfigFileOptions {
  /** Value of `--config`. */
  readonly configOption?: string | undefined;
  readonly env: Environment;
  /** Folder of the program: `<dir>/bin` of `<dir>/bin/klatch`. */
  readonly programBinDir: string;
}

/**
 * The configuration file to read: `--config`, `$KLATCH_CONFIG`, `conf/server.conf` beside the program's folder, then
 * `/etc/klatch/server.conf`. A file that was named has to be there: nothing else is read in its place.
 * Throws ConfigNotFoundError with the places it looked at.
 */
export function findConfigFile({ configOption: flag, env, programBinDir }: FindConfigFileOptions): string {
  const named = flag ?? (env['KLATCH_CONFIG'] === '' ? undefined : env['KLATCH_CONFIG']);
  const places =
    named === undefined ? [join(programBinDir, '../conf/server.conf'), '/etc/klatch/server.conf'] : [named];
  const found = places.find(fileMayExist);
  if (found === undefined) throw new ConfigNotFoundError(places);
  return found;
}

/** False only where there is nothing: a file in a closed folder is reported when it is read, not passed over. */
function fileMayExist(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // statSync answers undefined for ENOENT and ENOTDIR: whatever is thrown says that something is there or hidden.
    if (typeof error === 'object' && error !== null && 'code' in error) return true;
    throw error;
  }
}

/** The files that a configuration consists of, itself first; throws ConfigError as `readTreeFromSources` does. */
export function listConfigurationFiles(file: string, env: Environment): string[] {
  const files = new Set<string>();
  const sources = [{ name: REFERENCE_NAME, text: readAsset('config/reference.conf') }, { path: file }];
  readTreeFromSources(sources, env, { onFile: (path) => files.add(resolve(path)) });
  return [...files];
}

/** Reads sources; mistakes in their text come out as a ConfigError that shows nothing of a value that may be secret. */
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

/** A variable that our own service sets: nobody's password is spelled like it. */
function isKlatchVariableName(text: string): boolean {
  return /^KLATCH_[A-Z_]+$/.test(text);
}
