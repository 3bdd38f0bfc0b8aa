import { InvalidArgumentError, type Command } from 'commander';

/** The value of the global option `--config`. */
export function configFlag(command: Command): string | undefined {
  return command.optsWithGlobals<{ config?: string }>().config;
}

/** Appends examples that can be copied to a command's help. */
export function withExamples(command: Command, examples: readonly string[]): void {
  const title = examples.length === 1 ? 'Example' : 'Examples';
  command.addHelpText('after', `\n${title}:\n${examples.map((line) => `  ${line}`).join('\n')}`);
}

/** Adds the option to print the result as JSON, for scripts. */
export function withJson(command: Command): Command {
  return command.option('--json', 'print the result as JSON');
}

/** The options that select a page of a list that is ordered by number. */
export interface PageOptions {
  readonly after: number;
  readonly limit: number;
}

const MAX_PAGE_SIZE = 1_000;

/** Adds the options that select a page of a list that is ordered by number. */
export function withPageOptions(command: Command): Command {
  const parseAfter = wholeNumber(0, Number.MAX_SAFE_INTEGER);
  return withLimitOption(command.option('--after <id>', 'begin after this number', parseAfter, 0));
}

/** Adds an option that limits the length of a list. */
export function withLimitOption(command: Command): Command {
  const parseLimit = wholeNumber(1, MAX_PAGE_SIZE);
  return command.option('--limit <count>', `show at most this many, up to ${MAX_PAGE_SIZE}`, parseLimit, 100);
}

/** Returns a parser for an argument, or an option's value, that is a whole number from `min` to `max`. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^\d{1,16}$/.test(text) && number >= min && number <= max) return number;
    const range = max === Number.MAX_SAFE_INTEGER ? `from ${min} on` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`Give a whole number ${range}.`);
  };
}
