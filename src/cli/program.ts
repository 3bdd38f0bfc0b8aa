import { Command, CommanderError } from 'commander';
import { RENAME_BACKUP_ARGUMENT } from '../installation.ts';
import { readVersion } from '../version.ts';
import { addCommands, COMMAND_NAMES, neededCommands } from './commands.ts';
import { printError, type CommandContext } from './core/context.ts';
import { exitCodes } from './core/exit-codes.ts';
import { configFlag, withExamples } from './core/options.ts';
import { refuseCommand, refuseUnknownCommands } from './core/unknown-command.ts';

/** Runs a command line (without the program's name), and resolves to the exit status. Never rejects. */
export async function runCommandLine(args: readonly string[], context: CommandContext): Promise<number> {
  context.output.on('error', exitOnOutputError);
  try {
    if (args[0] === RENAME_BACKUP_ARGUMENT) {
      const { finalizerChildMain } = await import('./data/backup-rename.ts');
      await finalizerChildMain(args, context);
      return exitCodes.ok;
    }
    const program = await createProgram(context, neededCommands(args));
    await program.parseAsync(args, { from: 'user' });
    return exitCodes.ok;
  } catch (error) {
    // Commander has already printed an error message or the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    // Imported here, because it imports the errors of the whole program, which a successful command does not need.
    const { explainFailure } = await import('./core/explain-failure.ts');
    const { exitCode, text } = explainFailure(error);
    printError(context, `klatch: ${text}`);
    return exitCode;
  }
}

/**
 * Ends the process after an error of standard output. A reader that closes the pipe early (`klatch config show | head`)
 * is no failure, but a full disk is one.
 */
function exitOnOutputError(error: NodeJS.ErrnoException): never {
  process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.outputLost);
}

/**
 * Formats an error of the command line's parser like other errors. Adds a hint if the unknown option may be a text ("-5
 * degrees").
 */
function formatParserError(text: string): string {
  const hint = /^error: unknown option '-[^-]/.test(text)
    ? '(If it is no option but a text, put -- in front of it.)\n'
    : '';
  return `${text.replace(/^error: /, 'klatch: ')}${hint}`;
}

/** Creates the parser of the command line, with these commands (by default all) and their options and help. */
export async function createProgram(context: CommandContext, names = COMMAND_NAMES): Promise<Command> {
  const program = new Command('klatch');
  program
    .description('Klatch, a group messaging server with durable incoming and outgoing webhooks.')
    .version(readVersion(), '--version', 'print the version')
    .option(
      '--config <file>',
      'the configuration file (default: $KLATCH_CONFIG, conf/ beside the program, /etc/klatch)',
    )
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => context.output.write(text),
      writeErr: (text) => context.errorOutput.write(text),
      outputError: (text, write) => write(formatParserError(text)),
    })
    .showHelpAfterError('(klatch --help lists the commands, klatch help COMMAND explains one)')
    .action(async (_, self: Command) => {
      if (self.args[0] !== undefined) refuseCommand(self, self.args[0]);
      const { serve } = await import('./serve.ts');
      await serve(context, configFlag(self));
    });
  withExamples(program, ['klatch setup --embedded --base-uri https://chat.example.org', 'klatch serve']);
  await addCommands(program, context, names);
  // Excess words are allowed here, so that such a word is refused as an unknown command and not as "too many
  // arguments". This is set after the commands were added, because they would inherit the setting.
  program.allowExcessArguments();
  refuseUnknownCommands(program);
  return program;
}
