import type { Command } from 'commander';
import { removeGroupHook, updateHook } from '../../operations/hooks/hook-update.ts';
import { pingHook } from '../../operations/hooks/hook-ping.ts';
import type { CommandContext } from '../core/context.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { errorSentence } from '../../../client/core/delivery-sentences.ts';
import { hookNumberArgument, messageCountWithVerb } from './hook-format.ts';
import { formatFields } from '../../../client/terminal/table.ts';
import { withExamples, withJson } from '../core/options.ts';
import { callAndPrint, callPrintReturn } from '../core/call.ts';

type Updated = Awaited<ReturnType<(typeof updateHook)['run']>>;
type Pinged = Awaited<ReturnType<(typeof pingHook)['run']>>;

/** Makes the action of a command that changes one setting of a hook. */
function updateAction(
  context: CommandContext,
  change: { paused: boolean } | { rotate_secret: true },
  lines: (result: Updated) => string[],
) {
  return (id: number, { json }: { json?: boolean }, self: Command): Promise<void> =>
    callAndPrint(context, self, { operation: updateHook, input: { hook: id, ...change }, json, lines });
}

export function addPause(hook: Command, context: CommandContext): void {
  const pauseCommand = hook
    .command('pause')
    .description('hold a reverse webhook back: no attempt starts any more, messages wait')
    .addArgument(hookNumberArgument())
    .action(
      updateAction(context, { paused: true }, ({ id, group, pending }) => [
        `Reverse webhook ${id} of group ${group} is paused; ${messageCountWithVerb(pending)} waiting.`,
      ]),
    );
  withExamples(withJson(pauseCommand), ['klatch hook pause 5']);
}

export function addResume(hook: Command, context: CommandContext): void {
  const resumeCommand = hook
    .command('resume')
    .description('let a paused reverse webhook go on, or try a failing one at once; its failures are forgotten')
    .addArgument(hookNumberArgument())
    .action(
      updateAction(context, { paused: false }, ({ id, group, pending }) => [
        `Reverse webhook ${id} of group ${group} goes on at once; ${messageCountWithVerb(pending)} pending.`,
      ]),
    );
  withExamples(withJson(resumeCommand), ['klatch hook resume 5']);
}

export function addRotateSecret(hook: Command, context: CommandContext): void {
  const rotateCommand = hook
    .command('rotate-secret')
    .description('give a reverse webhook a new secret and show it; the old one signs beside it for 24 hours')
    .addArgument(hookNumberArgument())
    .action(updateAction(context, { rotate_secret: true }, rotatedLines));
  withExamples(withJson(rotateCommand), ['klatch hook rotate-secret 5']);
}

function rotatedLines({ id, group, secret, token }: Updated): string[] {
  return [
    ...formatFields([
      ['hook', id],
      ['group', group],
      ['secret', secret ?? null],
      ...(token === undefined ? [] : ([['token', token]] as const)),
    ]),
    '',
    'It is not shown again: give it to the receiver. Until then, for 24 hours, the secret before it signs too.',
  ];
}

export function addPing(hook: Command, context: CommandContext): void {
  const pingCommand = hook
    .command('ping')
    .description('send a signed ping to the target of a reverse webhook now, whatever its state, and tell the answer')
    .addArgument(hookNumberArgument())
    .action(async (id: number, { json }: { json?: boolean }, self: Command) => {
      const result = await callPrintReturn(context, self, {
        operation: pingHook,
        input: { hook: id },
        json,
        lines: pingSuccessLines,
      });
      if (result.delivered) return;
      const why = `the ping of reverse webhook ${id} to ${result.host} failed: ${errorSentence(result)}`;
      throw new CommandError(exitCodes.operationFailed, why);
    });
  withExamples(withJson(pingCommand), ['klatch hook ping 5', 'klatch hook ping 5 --json']);
}

function pingSuccessLines({ delivered, id, host, code, duration_ms: durationMs }: Pinged): string[] {
  return delivered ? [`The target of reverse webhook ${id}, ${host}, answered ${code} within ${durationMs} ms.`] : [];
}

export function addRemove(hook: Command, context: CommandContext): void {
  const removeCommand = hook
    .command('remove')
    .description('remove a reverse webhook for good, as its group can')
    .addArgument(hookNumberArgument())
    .action((id: number, { json }: { json?: boolean }, self: Command) =>
      callAndPrint(context, self, {
        operation: removeGroupHook,
        input: { hook: id },
        json,
        lines: ({ group }) => [`Reverse webhook ${id} of group ${group} is removed: nothing is sent to it any more.`],
      }),
    );
  withExamples(withJson(removeCommand), ['klatch hook remove 5']);
}
