import type { Environment } from '../../config/tree.ts';
import { toSafeJson } from '../../../client/core/safe-text.ts';
import type { ClusterLocations } from '../../storage/provision/clusters.ts';

/** What a command sees of the process it runs in. */
export interface CommandContext {
  readonly env: Environment;
  /** Folder of the program as `findConfigFile` wants it: `<dir>/bin`. */
  readonly programBinDir: string;
  /** Where PostgreSQL servers of this machine are looked for; the system's places where nothing else is said. */
  readonly postgresqlClusterLocations?: ClusterLocations;
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly errorOutput: NodeJS.WriteStream;
}

/** Prints lines for whoever reads the command's result. */
export function print(context: CommandContext, ...lines: readonly string[]): void {
  for (const line of lines) context.output.write(`${line}\n`);
}

/** Prints lines about what went wrong or goes on. */
export function printError(context: CommandContext, ...lines: readonly string[]): void {
  for (const line of lines) context.errorOutput.write(`${line}\n`);
}

/** Prints a result as JSON for programs; others' text in it is harmless on a terminal too. */
export function printJson(context: CommandContext, value: unknown): void {
  print(context, toSafeJson(value, 2));
}
