import type { Command } from 'commander';
import type { Operation } from '../../operations/core/operation.ts';
import { toSafeJson } from '../../../client/core/safe-text.ts';
import { print, type CommandContext } from './context.ts';
import { callServer } from './control-client.ts';
import { configuredDataDir } from './data-dir.ts';
import { configFlag } from './options.ts';

/** A call of an operation of the running server, with a function that turns its result into lines for a person. */
interface ServerCall<Input, Output> {
  readonly operation: Operation<Input, Output>;
  readonly input: Input;
  readonly json: boolean | undefined;
  readonly lines: (result: Output) => readonly string[];
}

/** Calls an operation of the server that the command line selects, and prints the result; with `--json`, as JSON. */
export async function callAndPrint<Input, Output>(
  context: CommandContext,
  command: Command,
  call: ServerCall<Input, Output>,
): Promise<void> {
  await callPrintReturn(context, command, call);
}

/** Calls an operation of the server, prints the result as `callAndPrint` does, and resolves with it. */
export async function callPrintReturn<Input, Output>(
  context: CommandContext,
  command: Command,
  call: ServerCall<Input, Output>,
): Promise<Output> {
  const { operation, input, json, lines } = call;
  const dataDir = configuredDataDir(context, configFlag(command));
  const result = await callServer({ dataDir, operation, input });
  print(context, ...(json === true ? [toSafeJson(result, 2)] : lines(result)));
  return result;
}

/** Lines that say how to see the next page of a list; empty after the last page. */
export function nextPageHint(next: string | number | null, option = '--after'): string[] {
  return next === null ? [] : ['', `There are more: repeat the command with ${option} ${next}`];
}
