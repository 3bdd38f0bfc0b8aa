import { setTimeout as wait } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { findConfigFile } from '../config/load.ts';
import { serverStatus } from '../operations/server-status.ts';
import { absenceSentence, explainAbsence, obstaclesOf, type Absence } from './absence.ts';
import { print, type CommandContext } from './context.ts';
import { callServer, OtherVersionError } from './control-client.ts';
import { dataDirOf } from './data-dir.ts';
import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';
import { configFlag, withExamples, withJson } from './options.ts';
import type { LastRun } from '../storage/run-record.ts';
import { absenceLines, statusLines, type Status } from './status-lines.ts';

const ASK_MS = 3_000;
const POLL_MS = 200;
const MAX_WAIT_S = 3_600;

export function addStatus(program: Command, context: CommandContext): void {
  const command = program
    .command('status')
    .description('show the running server, its database and its deliveries on one screen; or why no server runs')
    .action(async ({ json }: { json?: boolean }, self: Command) => {
      await showStatus(context, configFlag(self), json === true);
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

async function showStatus(context: CommandContext, flag: string | undefined, json: boolean): Promise<void> {
  const dataDir = dataDirOf(context, flag);
  const asked = await ask(dataDir);
  if ('version' in asked) {
    const state = asked.ready ? 'ready' : 'database away';
    print(context, ...(json ? [JSON.stringify({ state, ...asked }, null, 2)] : statusLines(asked)));
    if (!asked.ready) throw notReady();
    return;
  }
  const file = findConfigFile({ flag, env: context.env, programDir: context.programDir });
  const obstacles = await obstaclesOf(asked, file, context.env);
  const { state, pid, lastRun } = asked;
  const found = { state, ready: false, data_dir: dataDir, pid, last_run: presentRun(lastRun), obstacles };
  print(context, ...(json ? [JSON.stringify(found, null, 2)] : absenceLines(asked, obstacles)));
  throw absent(dataDir, asked);
}

/** Asks until the server is ready; rejects with the last reason when the time is over. */
async function waitUntilReady(dataDir: string, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const reason = await whyNotReady(dataDir);
    if (reason === null) return;
    if (performance.now() >= deadline) throw reason;
    await wait(POLL_MS);
  }
}

/** Null when it is ready; rejects with what no waiting mends. */
async function whyNotReady(dataDir: string): Promise<CommandError | null> {
  try {
    const asked = await ask(dataDir);
    if (!('version' in asked)) return absent(dataDir, asked);
    return asked.ready ? null : notReady();
  } catch (error) {
    // Its successor may be on its way.
    if (error instanceof OtherVersionError) return error;
    throw error;
  }
}

/** What the server says, or why it says nothing. Rejects where it may not be asked, and where it answers strangely. */
async function ask(dataDir: string): Promise<Status | Absence> {
  try {
    return await callServer({ dataDir, operation: serverStatus, input: {}, timeoutMs: ASK_MS });
  } catch (error) {
    const isAway = error instanceof CommandError && error.exitCode === exitCodes.unavailable;
    if (!isAway || error instanceof OtherVersionError) throw error;
    return explainAbsence(dataDir);
  }
}

function presentRun(lastRun: LastRun | null): object | null {
  if (lastRun === null) return null;
  const { lastSeenAt, ...stored } = lastRun;
  return { ...stored, last_seen_at: lastSeenAt.toISOString() };
}

function notReady(): CommandError {
  return new CommandError(exitCodes.unavailable, 'the server runs, but its database does not answer');
}

function absent(dataDir: string, absence: Absence): CommandError {
  const where = `the Klatch with the data directory ${dataDir}`;
  if (['starting', 'stopping', 'silent'].includes(absence.state)) {
    return new CommandError(exitCodes.unavailable, `${where} is not ready: it ${describe(absence)}`);
  }
  const sentence = `no Klatch runs with the data directory ${dataDir}: start it with \`klatch serve\``;
  return new CommandError(exitCodes.unavailable, sentence);
}

function describe(absence: Absence): string {
  const sentence = absenceSentence(absence);
  return absence.state === 'silent' ? sentence : `is ${sentence}`;
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (!/^\d+$/.test(text) || seconds > MAX_WAIT_S) {
    throw new InvalidArgumentError(`give whole seconds, from 0 to ${MAX_WAIT_S}.`);
  }
  return seconds;
}
