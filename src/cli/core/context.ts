import type { Environment } from '../../config/tree.ts';
import { toSafeJson } from '../../../client/core/safe-text.ts';
import type { ClusterLocations } from '../../storage/provision/clusters.ts';

/** The parts of the process that a command uses. Tests replace them. */
export interface CommandContext {
  readonly env: Environment;
  /** The folder of the program, `<dir>/bin`; `findConfigFile` searches for a configuration beside it. */
  readonly programBinDir: string;
  /** The paths at which PostgreSQL servers of this machine are searched for; absent: the system's usual paths. */
  readonly postgresqlClusterLocations?: ClusterLocations;
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly errorOutput: NodeJS.WriteStream;
}

/** Prints lines of a command's result on standard output. */
export function print(context: CommandContext, ...lines: readonly string[]): void {
  for (const line of lines) context.output.write(`${line}\n`);
}

/** Prints lines about failures and progress on standard error. */
export function printError(context: CommandContext, ...lines: readonly string[]): void {
  for (const line of lines) context.errorOutput.write(`${line}\n`);
}

/**
 * Prints a result as JSON for programs. Control characters in other people's text are escaped, so the output is also
 * safe on a terminal.
 */
export function printJson(context: CommandContext, value: unknown): void {
  print(context, toSafeJson(value, 2));
}
