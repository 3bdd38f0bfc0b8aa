import { setTimeout as wait } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { serverStatus } from '../operations/server-status.ts';
import { print, type CommandContext } from './context.ts';
import { callServer } from './control-client.ts';
import { dataDirOf } from './data-dir.ts';
import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';
import { formatDuration, formatFields } from './layout.ts';
import { configFlag, withExamples, withJson } from './options.ts';

type Status = Awaited<ReturnType<(typeof serverStatus)['run']>>;

const ASK_MS = 3_000;
const POLL_MS = 200;
const MAX_WAIT_S = 3_600;

export function addStatus(program: Command, context: CommandContext): void {
  const command = program
    .command('status')
    .description('show the running server: since when, which version, and whether its database answers')
    .action(async ({ json }: { json?: boolean }, self: Command) => {
      const status = await ask(dataDirOf(context, configFlag(self)));
      print(context, ...(json === true ? [JSON.stringify(status, null, 2)] : statusLines(status)));
      if (!status.ready) throw notReady();
    });
  withExamples(withJson(command), ['klatch status', 'klatch status --json']);
}

export function addReady(program: Command, context: CommandContext): void {
  const command = program
    .command('ready')
    .description('end with 0 when the server can do its work, else with 69 and the reason')
    .option('--wait <seconds>', 'wait up to this long for it', parseSeconds, 0)
    .action(async ({ wait: seconds }: { wait: number }, self: Command) => {
      await waitUntilReady(dataDirOf(context, configFlag(self)), seconds * 1_000);
    });
  withExamples(command, ['klatch ready --wait 60']);
}

/** Asks until the server is ready; rejects with the last reason when the time is over. */
async function waitUntilReady(dataDir: string, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    try {
      if ((await ask(dataDir)).ready) return;
      if (performance.now() >= deadline) throw notReady();
    } catch (error) {
      const mayCome = error instanceof CommandError && error.exitCode === exitCodes.unavailable;
      if (!mayCome || performance.now() >= deadline) throw error;
    }
    await wait(POLL_MS);
  }
}

function ask(dataDir: string): Promise<Status> {
  return callServer({ dataDir, operation: serverStatus, input: {}, timeoutMs: ASK_MS });
}

function notReady(): CommandError {
  return new CommandError(exitCodes.unavailable, 'the server runs, but its database does not answer');
}

function statusLines({ version, started_at, pid, database, ready, waiting_posts }: Status): string[] {
  return formatFields([
    ['server', `Klatch ${version}, pid ${pid}`],
    ['up', `${formatDuration(Date.now() - Date.parse(started_at))}, since ${started_at}`],
    ['database', `${database}, ${ready ? 'answers' : 'does not answer'}`],
    ['waiting posts', waiting_posts],
  ]);
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (!/^\d+$/.test(text) || seconds > MAX_WAIT_S) {
    throw new InvalidArgumentError(`give whole seconds, from 0 to ${MAX_WAIT_S}.`);
  }
  return seconds;
}
