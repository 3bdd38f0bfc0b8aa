import type { Command } from 'commander';
import { addChatCommands } from '../../client/terminal/chat.ts';
import type { CommandContext } from './core/context.ts';
import { exitCodes } from './core/exit-codes.ts';
import { wholeNumber, withExamples, withJson } from './core/options.ts';
import { Prompt } from './core/prompt.ts';
import { StopSignals } from './core/stop-signals.ts';
import { readText } from './core/text-input.ts';
import { refuseCommand } from './core/unknown-command.ts';

/** Adds the chat commands, and gives them helpers of `src`, from which the code of the client imports nothing. */
export function addChat(program: Command, context: CommandContext): void {
  addChatCommands(program, {
    env: context.env,
    // A getter, because Node opens standard input when it is first read.
    get input() {
      return context.input;
    },
    output: context.output,
    errorOutput: context.errorOutput,
    withExamples,
    withJson,
    wholeNumber,
    refuseCommand,
    readTextFromStdin: () => readText(context.input),
    createPrompt: () => new Prompt(context.input, context.output),
    createStopSignals: () => new StopSignals(() => process.exit(exitCodes.operationFailed)),
  });
}
