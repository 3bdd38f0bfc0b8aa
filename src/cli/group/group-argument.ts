import type { Command } from 'commander';
import type { Operation } from '../../operations/core/operation.ts';
import type { CommandContext } from '../core/context.ts';
import { callAndPrint } from '../core/call.ts';

/** The help text of an argument that selects a group. */
export const GROUP_ARGUMENT_HELP = 'the number of a group, or its title where no other group has the same';

/** Makes the action of a command whose only input is a group. */
export function groupOnlyAction<Output>(
  context: CommandContext,
  operation: Operation<{ group: string | number }, Output>,
  lines: (result: Output) => string[],
) {
  return (group: string, { json }: { json?: boolean }, self: Command): Promise<void> =>
    callAndPrint(context, self, { operation, input: { group }, json, lines });
}
