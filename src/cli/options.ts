import type { Command } from 'commander';

/** The value of the global `--config`. */
export function configFlag(command: Command): string | undefined {
  return command.optsWithGlobals<{ config?: string }>().config;
}

/** Ends a command's help with lines that can be copied. */
export function withExamples(command: Command, examples: readonly string[]): void {
  const title = examples.length === 1 ? 'Example' : 'Examples';
  command.addHelpText('after', `\n${title}:\n${examples.map((line) => `  ${line}`).join('\n')}`);
}

/** Offers the result as JSON, for scripts. */
export function withJson(command: Command): Command {
  return command.option('--json', 'print the result as JSON');
}
