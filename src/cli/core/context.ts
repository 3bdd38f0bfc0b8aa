import type { Environment } from '../../config/tree.ts';
import { toSafeJson } from '../../../client/core/safe-text.ts';
import type { ClusterLocations } from '../../storage/provision/clusters.ts';

/** The parts of the process that a command uses. */
export interface CommandContext {
  readonly env: Environment;
  /** Folder of the program as `findConfigFile` wants it: `<dir>/bin`. */
  readonly programBinDir: string;
  /** Where to search for PostgreSQL servers of this machine; absent: at the system's usual paths. */
  readonly postgresqlClusterLocations?: ClusterLocations;
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly errorOutput: NodeJS.WriteStream;
}

/** Prints lines of the command's result on standard output. */
export function print(context: CommandContext, ...lines: readonly string[]): void {
  for (const line of lines) context.output.write(`${line}\n`);
}

/** Prints lines about failures and progress on standard error. */
export function printError(context: CommandContext, ...lines: readonly string[]): void {
  for (const line of lines) context.errorOutput.write(`${line}\n`);
}

/** Prints a result as JSON for programs; text of other people in it is safe on a terminal, too. */
export function printJson(context: CommandContext, value: unknown): void {
  print(context, toSafeJson(value, 2));
}
