import { Command, CommanderError } from 'commander';
import { readVersion } from '../version.ts';
import { addApi } from './api.ts';
import { addBackup } from './backup.ts';
import { addChat } from './chat.ts';
import { addCompletion } from './completion.ts';
import { addConfig } from './config.ts';
import { printError, type CommandContext } from './context.ts';
import { addDatabase } from './db-upgrade.ts';
import { addDoctor } from './doctor.ts';
import { exitCodes } from './exit-codes.ts';
import { explainFailure } from './failure.ts';
import { addFiles } from './files.ts';
import { addGroup } from './group.ts';
import { addHook } from './hook.ts';
import { addKeys } from './keys.ts';
import { addMigrate } from './migrate.ts';
import { configFlag, withExamples } from './options.ts';
import { addPush } from './push.ts';
import { addReady } from './ready.ts';
import { addRestore } from './restore.ts';
import { addSend } from './send.ts';
import { addServe, serve } from './serve.ts';
import { addSetup } from './setup.ts';
import { addStatus } from './status.ts';
import { refuseCommand, refuseUnknownCommands } from './unknown-command.ts';
import { addUser } from './user.ts';

/** Runs one command line (without the program's name) and resolves with the exit status; it never rejects. */
export async function runCommandLine(args: readonly string[], context: CommandContext): Promise<number> {
  context.output.on('error', endWithoutReader);
  try {
    await createProgram(context).parseAsync(args, { from: 'user' });
    return exitCodes.ok;
  } catch (error) {
    // Commander has printed its own sentence, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    const { exitCode, text } = explainFailure(error);
    printError(context, `klatch: ${text}`);
    return exitCode;
  }
}

/** A reader that has seen enough (`klatch config show | head`) is no failure; a disk that is full is one. */
function endWithoutReader(error: NodeJS.ErrnoException): never {
  process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.outputLost);
}

/** What the parser says, as everything else is said; and how a text is given that looks like an option ("-5 degrees"). */
function sentenceOf(text: string): string {
  const hint = /^error: unknown option '-[^-]/.test(text)
    ? '(If it is no option but a text, put -- in front of it.)\n'
    : '';
  return `${text.replace(/^error: /, 'klatch: ')}${hint}`;
}

/** Every command with its options and help. */
export function createProgram(context: CommandContext): Command {
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
      writeErr: (text) => context.errors.write(text),
      outputError: (text, write) => write(sentenceOf(text)),
    })
    .showHelpAfterError('(klatch --help lists the commands, klatch help COMMAND explains one)')
    .action(async (_, self: Command) => {
      if (self.args[0] !== undefined) refuseCommand(self, self.args[0]);
      await serve(context, configFlag(self));
    });
  withExamples(program, ['klatch setup --embedded --base-uri https://chat.example.org', 'klatch serve']);
  for (const add of [
    addServe,
    addSetup,
    addConfig,
    addMigrate,
    addBackup,
    addRestore,
    addDatabase,
    addStatus,
    addReady,
    addDoctor,
    addUser,
    addGroup,
    addHook,
    addFiles,
    addPush,
    addKeys,
    addSend,
    addChat,
    addApi,
    addCompletion,
  ])
    add(program, context);
  // After the commands, which would inherit it. What is left over is refused above by name, not as "too many arguments".
  program.allowExcessArguments();
  refuseUnknownCommands(program);
  return program;
}
