import { Argument, type Command } from 'commander';
import { bashCompletion } from './bash-completion.ts';
import type { CommandContext } from './core/context.ts';
import { withExamples } from './core/options.ts';

export function addCompletion(program: Command, context: CommandContext): void {
  const completionCommand = program
    .command('completion')
    .description('print a script that makes a shell complete commands, options, choices and file names')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash']))
    .action(() => {
      context.output.write(bashCompletion(program));
    });
  withExamples(completionCommand, [
    'source <(klatch completion bash)',
    'klatch completion bash > /usr/share/bash-completion/completions/klatch',
  ]);
}
