import { Option, type Command } from 'commander';
import { hookInfo, listAllHooks, listGroupHooks } from '../../operations/hooks/hook-list.ts';
import { restoreRemovedHook } from '../../operations/hooks/hook-restore.ts';
import type { CommandContext } from '../core/context.ts';
import { GROUP_ARGUMENT_HELP } from '../group/group-argument.ts';
import { hookLines } from './hook-info.ts';
import { addLog, addRedeliver, addDiscardBacklog } from './hook-log.ts';
import { addPause, addPing, addRemove, addResume, addRotateSecret } from './hook-control.ts';
import { errorSentence } from '../../../client/core/delivery-sentences.ts';
import { hookNumberArgument } from './hook-format.ts';
import { ago, formatDuration, formatTable } from '../../../client/terminal/table.ts';
import { withExamples, withJson, withPageOptions, type PageOptions } from '../core/options.ts';
import { callAndPrint, nextPageHint } from '../core/call.ts';

type HookList = Awaited<ReturnType<(typeof listAllHooks)['run']>>;
type ListedHook = HookList['hooks'][number];
type Restored = Awaited<ReturnType<(typeof restoreRemovedHook)['run']>>;

interface ListOptions extends PageOptions {
  readonly group?: string;
  readonly state?: ListedHook['state'];
  readonly json?: boolean;
}

const HOOK_STATES: readonly ListedHook['state'][] = ['active', 'failing', 'parked', 'paused', 'removed'];

export function addHook(program: Command, context: CommandContext): void {
  const hook = program.command('hook').description('look after the reverse webhooks of all groups');
  withExamples(hook, [
    'klatch hook list --state failing',
    'klatch hook info 5',
    'klatch hook ping 5',
    'klatch hook redeliver 5 --from 1h',
  ]);
  addList(hook, context);
  addInfo(hook, context);
  addLog(hook, context);
  addPause(hook, context);
  addResume(hook, context);
  addPing(hook, context);
  addRedeliver(hook, context);
  addDiscardBacklog(hook, context);
  addRotateSecret(hook, context);
  addRemove(hook, context);
  addRestore(hook, context);
}

function addList(hook: Command, context: CommandContext): void {
  const listCommand = hook
    .command('list')
    .description('list the reverse webhooks of all groups by number, with their state and what waits for them')
    .option('--group <group>', `only those of this group: ${GROUP_ARGUMENT_HELP}`)
    .addOption(
      new Option('--state <state>', 'only those in this state (removed ones are listed with "removed" alone)').choices(
        HOOK_STATES,
      ),
    )
    .action(({ after, limit, group, state, json }: ListOptions, self: Command) => {
      const outputOptions = { json, lines: hookListLines };
      return group === undefined
        ? callAndPrint(context, self, { operation: listAllHooks, input: { after, limit, state }, ...outputOptions })
        : callAndPrint(context, self, {
            operation: listGroupHooks,
            input: { group, after, limit, state, requests: false },
            ...outputOptions,
          });
    });
  withExamples(withJson(withPageOptions(listCommand)), [
    'klatch hook list --state failing',
    'klatch hook list --group Operations --json',
  ]);
}

function hookListLines({ hooks, next }: HookList): string[] {
  if (hooks.length === 0) return ['There is no such reverse webhook.'];
  const nowMs = Date.now();
  const rows = hooks.map((hook) => [
    hook.id,
    hook.group,
    hook.state,
    hook.pending,
    hook.oldest_pending_at === null ? '-' : formatDuration(nowMs - Date.parse(hook.oldest_pending_at)),
    hook.host,
    hook.last_error === null ? '-' : `${errorSentence(hook.last_error)}, ${ago(hook.last_error.at, nowMs)}`,
  ]);
  const heading = ['HOOK', 'GROUP', 'STATE', 'PENDING', 'OLDEST', 'HOST', 'LAST ERROR'];
  return [...formatTable(heading, rows), ...nextPageHint(next)];
}

function addInfo(hook: Command, context: CommandContext): void {
  const infoCommand = hook
    .command('info')
    .description('show everything about a reverse webhook but its secret: target, state, errors, last attempts')
    .addArgument(hookNumberArgument())
    .action((id: number, { json }: { json?: boolean }, self: Command) =>
      callAndPrint(context, self, { operation: hookInfo, input: { hook: id }, json, lines: hookLines }),
    );
  withExamples(withJson(infoCommand), ['klatch hook info 5', 'klatch hook info 5 --json']);
}

function addRestore(hook: Command, context: CommandContext): void {
  const restoreCommand = hook
    .command('restore')
    .description('bring back a reverse webhook that a 410 of its target removed, and send what it has missed')
    .addArgument(hookNumberArgument())
    .action((id: number, { json }: { json?: boolean }, self: Command) =>
      callAndPrint(context, self, { operation: restoreRemovedHook, input: { hook: id }, json, lines: restoredLines }),
    );
  withExamples(withJson(restoreCommand), ['klatch hook list --state removed', 'klatch hook restore 5']);
}

function restoredLines({ id, group, host, pending }: Restored): string[] {
  const missed = pending === 1 ? '1 message that it has missed is' : `${pending} messages that it has missed are`;
  return [`Reverse webhook ${id} of group ${group} is back: ${missed} being sent to ${host}.`];
}
