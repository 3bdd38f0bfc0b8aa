import type { Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import { findConfigFile } from '../config/tree.ts';
import {
  ConfigError,
  formatProblem,
  formatWithExcerpt,
  NotConfiguredError,
  type ConfigProblem,
} from '../config/problem.ts';
import { describeConfig, formatConfig } from '../config/show.ts';
import { type CommandContext, print, printJson } from './core/context.ts';
import { exitCodes } from './core/exit-codes.ts';
import { CommandError } from './core/failure.ts';
import { configFlag, withExamples, withJson } from './core/options.ts';

interface OutputOptions {
  readonly json?: boolean;
}

export function addConfig(program: Command, context: CommandContext): void {
  const config = program.command('config').description('check the configuration and show what is in force');
  withExamples(config, ['klatch config check', 'klatch config show']);
  const checkCommand = config
    .command('check')
    .description('read the whole configuration and name every mistake in it')
    .action((options: OutputOptions, self: Command) => checkConfig(context, configFlag(self), options));
  withExamples(withJson(checkCommand), ['klatch config check --config ./server.conf']);
  const showCommand = config
    .command('show')
    .description('print every key with the value in force and where it comes from, secrets hidden')
    .action((options: OutputOptions, self: Command) => showConfig(context, configFlag(self), options));
  withExamples(withJson(showCommand), ['klatch config show', 'klatch config show --json']);
}

function checkConfig(context: CommandContext, configOption: string | undefined, { json }: OutputOptions): void {
  const file = findConfigFile({ configOption: configOption, env: context.env, programBinDir: context.programBinDir });
  const { warnings, problems } = findConfigProblems(file, context.env);
  const ok = problems.length === 0;
  const sentences = problems.map(formatProblem);
  if (json === true) printJson(context, { file, ok, problems: sentences, warnings });
  else print(context, ...warnings.map((warning) => `warning: ${warning}`), ...(ok ? [`${file}: OK`] : []));
  if (!ok) {
    const countPhrase = problems.length === 1 ? 'has a problem' : `has ${problems.length} problems`;
    const lines = json === true ? [] : problems.map(formatWithExcerpt);
    throw new CommandError(exitCodes.notConfigured, [`${file} ${countPhrase}`, ...lines].join('\n'));
  }
}

/** Finds all warnings and problems of a configuration. */
function findConfigProblems(
  configFile: string,
  env: CommandContext['env'],
): { warnings: readonly string[]; problems: readonly ConfigProblem[] } {
  try {
    return { warnings: loadConfig(configFile, { env }).warnings, problems: [] };
  } catch (error) {
    if (error instanceof ConfigError) return { warnings: [], problems: error.problems };
    if (!(error instanceof NotConfiguredError)) throw error;
    return { warnings: [], problems: [...error.missing, ...error.problems] };
  }
}

function showConfig(context: CommandContext, configOption: string | undefined, { json }: OutputOptions): void {
  const file = findConfigFile({ configOption: configOption, env: context.env, programBinDir: context.programBinDir });
  const settings = describeConfig(loadConfig(file, { env: context.env }).root);
  if (json === true) printJson(context, { file, settings });
  else context.output.write(formatConfig(settings));
}
