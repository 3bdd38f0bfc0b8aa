import type { Command } from 'commander';
import type { CommandContext } from './core/context.ts';

type AddCommand = (program: Command, context: CommandContext) => void;

/**
 * The commands in the order of the help, each with the import of its module. A module is loaded when its command runs.
 * All modules together contain nearly the whole program: their evaluation took six times as long as the start of Node.
 */
const COMMAND_LOADERS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  serve: async () => (await import('./serve.ts')).addServe,
  setup: async () => (await import('./setup/setup.ts')).addSetup,
  config: async () => (await import('./config.ts')).addConfig,
  migrate: async () => (await import('./data/migrate.ts')).addMigrate,
  backup: async () => (await import('./data/backup.ts')).addBackup,
  restore: async () => (await import('./data/restore.ts')).addRestore,
  db: async () => (await import('./data/embedded-postgresql-upgrade.ts')).addEmbeddedPostgresqlUpgrade,
  status: async () => (await import('./health/status.ts')).addStatus,
  ready: async () => (await import('./health/ready.ts')).addReady,
  doctor: async () => (await import('./health/doctor.ts')).addDoctor,
  'admin-link': async () => (await import('./admin-link.ts')).addAdminLink,
  user: async () => (await import('./user.ts')).addUser,
  group: async () => (await import('./group/group.ts')).addGroup,
  hook: async () => (await import('./hook/hook.ts')).addHook,
  files: async () => (await import('./data/files.ts')).addFiles,
  push: async () => (await import('./health/push.ts')).addPush,
  keys: async () => (await import('./data/keys.ts')).addKeys,
  send: async () => (await import('./send.ts')).addSend,
  chat: async () => (await import('./chat.ts')).addChat,
  api: async () => (await import('./api.ts')).addApiReference,
  completion: async () => (await import('./completion.ts')).addCompletion,
};

/** The names of all commands, in the order of the help. */
export const COMMAND_NAMES: readonly string[] = Object.keys(COMMAND_LOADERS);

/** Loads the modules of these commands and adds the commands to the program. */
export async function addCommands(program: Command, context: CommandContext, names: readonly string[]): Promise<void> {
  const adders = await Promise.all(names.map((name) => COMMAND_LOADERS[name]!()));
  for (const add of adders) add(program, context);
}

/**
 * The commands that a command line needs:
 * - the command that it names
 * - none if it only asks for the version or starts the server
 * - all if it asks for help, completes names, or names no command: the answer can then list or suggest them
 */
export function neededCommands(args: readonly string[]): readonly string[] {
  let argIndex = 0;
  while (args[argIndex] === '--config' || args[argIndex]?.startsWith('--config='))
    argIndex += args[argIndex] === '--config' ? 2 : 1;
  const commandName = args[argIndex];
  if (commandName === undefined || commandName === '--version') return [];
  // The script of `completion` has the names of all commands. An unknown name needs all of them for a suggestion.
  if (commandName === 'completion' || !Object.hasOwn(COMMAND_LOADERS, commandName)) return COMMAND_NAMES;
  return [commandName];
}
