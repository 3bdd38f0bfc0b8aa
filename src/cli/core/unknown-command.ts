import type { Command } from 'commander';
import { editDistance } from '../../config/edit-distance.ts';

/** The greatest edit distance between a typed name and a command for which the name counts as a typing error. */
const MAX_EDIT_DISTANCE = 2;

/**
 * Makes every command with subcommands refuse an unknown subcommand. That includes requests for help: without this, the
 * help of the parent command would look like an answer.
 */
export function refuseUnknownCommands(command: Command): void {
  if (command.commands.length === 0) return;
  command.on('command:*', (operands: readonly string[]) => refuseCommand(command, operands[0] ?? ''));
  command.on('beforeHelp', () => {
    const [first, second] = command.args;
    const name = first === 'help' ? second : first;
    if (name !== undefined && !name.startsWith('-') && !subcommandNames(command).includes(name))
      refuseCommand(command, name);
  });
  for (const each of command.commands) refuseUnknownCommands(each);
}

/** Exits with an error that names the unknown command, and suggests a command with a similar name if there is one. */
export function refuseCommand(command: Command, name: string): never {
  const path = [...commandWordsWithoutProgram(command), name].join(' ');
  const similarName = nearestName(name, subcommandNames(command));
  const suggestion = similarName === null ? '' : `\n(Did you mean ${similarName}?)`;
  return command.error(`error: there is no command ${path}${suggestion}`, { code: 'klatch.command' });
}

/** The words that select the command on the command line, without the program's own name. */
function commandWordsWithoutProgram(command: Command): string[] {
  return command.parent === null ? [] : [...commandWordsWithoutProgram(command.parent), command.name()];
}

function subcommandNames(command: Command): string[] {
  return command.commands.flatMap((each) => [each.name(), ...each.aliases()]);
}

function nearestName(name: string, names: readonly string[]): string | null {
  const candidates = names.map((each) => ({ each, distance: editDistance(name, each) }));
  const [first] = candidates.toSorted((a, b) => a.distance - b.distance);
  // At most half of the letters may differ, so that "key" is not suggested for "fly".
  const isNear = first !== undefined && first.distance <= Math.min(MAX_EDIT_DISTANCE, name.length / 2);
  return isNear ? first.each : null;
}
