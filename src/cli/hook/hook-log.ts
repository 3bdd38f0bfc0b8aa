import { InvalidArgumentError, type Command } from 'commander';
import { hookLog, MAX_LOG_PAGE_SIZE } from '../../operations/hooks/hook-delivery-log.ts';
import { redeliverHook, discardHookBacklog } from '../../operations/hooks/hook-redeliver.ts';
import { parseTimestamp } from '../../operations/core/timestamp.ts';
import { deliveryOutcomes, type DeliveryOutcome } from '../../model/delivery-outcome.ts';
import type { CommandContext } from '../core/context.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { attemptedRange, hookNumberArgument, messageCountWithVerb } from './hook-format.ts';
import { errorSentence, replyProblemSentence } from '../../../client/core/delivery-sentences.ts';
import { ago, formatTable } from '../../../client/terminal/table.ts';
import { wholeNumber, withExamples, withJson } from '../core/options.ts';
import { callAndPrint, nextPageHint } from '../core/call.ts';

type DeliveryLogPage = Awaited<ReturnType<(typeof hookLog)['run']>>;
type LoggedAttempt = DeliveryLogPage['attempts'][number];
type Redelivered = Awaited<ReturnType<(typeof redeliverHook)['run']>>;

interface LogOptions {
  readonly before?: string;
  readonly limit: number;
  readonly outcome?: DeliveryOutcome[];
  readonly since?: string;
  readonly message?: string;
  readonly json?: boolean;
}

const DEFAULT_LOG_LIMIT = 20;

export function addLog(hook: Command, context: CommandContext): void {
  const logCommand = hook
    .command('log')
    .description('show what was sent to a reverse webhook and with which outcome, newest first')
    .addArgument(hookNumberArgument())
    .option('--before <place>', 'go on before this place, as the end of the page before names it, or before a time')
    .option(
      '--limit <count>',
      `show at most this many, up to ${MAX_LOG_PAGE_SIZE}`,
      wholeNumber(1, MAX_LOG_PAGE_SIZE),
      DEFAULT_LOG_LIMIT,
    )
    .option(
      '--outcome <outcomes>',
      `show only attempts with these outcomes, with commas between them: ${deliveryOutcomes.join(', ')}`,
      parseOutcomes,
    )
    .option('--since <time>', 'show only attempts since this time (2026-11-20T08:00:00Z), or since this long ago (1h)')
    .option('--message <id>', 'show only attempts of this message (7:42) and of its events')
    .action((id: number, { json, since, ...options }: LogOptions, self: Command) => {
      const sinceTime = since === undefined ? undefined : parseAgeOrTime(since, Date.now());
      if (sinceTime === null) throw new CommandError(exitCodes.usage, `--since: give ${TIME_OR_AGE}`);
      const input = { hook: id, ...options, since: sinceTime };
      return callAndPrint(context, self, { operation: hookLog, input, json, lines: logLines });
    });
  withExamples(withJson(logCommand), [
    'klatch hook log 5',
    'klatch hook log 5 --before 2026-11-20T08:00:00Z --limit 100 --json',
    'klatch hook log 5 --outcome failed,dead_lettered --since 1h',
    'klatch hook log 5 --message 7:42',
  ]);
}

function parseOutcomes(text: string): DeliveryOutcome[] {
  return text.split(',').map((name) => {
    const outcome = deliveryOutcomes.find((each) => each === name);
    if (outcome === undefined) throw new InvalidArgumentError(`It has to name some of ${deliveryOutcomes.join(', ')}.`);
    return outcome;
  });
}

function logLines({ attempts, next }: DeliveryLogPage): string[] {
  if (attempts.length === 0) return ['The delivery log has no attempts of it.'];
  const nowMs = Date.now();
  const rows = attempts.map((attempt) => [
    ago(attempt.at, nowMs),
    attemptedRange(attempt),
    attempt.attempt,
    `${attempt.duration_ms} ms`,
    describeResult(attempt),
  ]);
  return [...formatTable(['WHEN', 'MESSAGE', 'ATTEMPT', 'TOOK', 'RESULT'], rows), ...nextPageHint(next, '--before')];
}

function describeResult(attempt: LoggedAttempt): string {
  const { outcome, category, code, seq, last_seq: last, rev } = attempt;
  if (outcome === 'delivered') {
    const problem = category === null ? '' : `; ${replyProblemSentence(category)}`;
    return `delivered, the target answered ${code}${problem}`;
  }
  if (outcome === 'expired') {
    const what = rev === undefined ? 'removed by a retention rule' : 'expired';
    return `${what} before ${rev === undefined && seq === last ? 'it was' : 'they were'} delivered`;
  }
  if (outcome === 'skipped') {
    const why = category === 'too old' ? 'passed over, older than max_age' : 'dropped on request';
    return `${why}${seq === last || rev !== undefined ? '' : `, from ${seq} to ${last}`}`;
  }
  if (outcome === 'dead_lettered') return `given up: ${errorSentence(attempt)}`;
  if (outcome === 'unregistered') return `removed: ${errorSentence(attempt)}`;
  return `${outcome}: ${errorSentence(attempt)}`;
}

interface RedeliverOptions {
  readonly from?: string;
  readonly only?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

export function addRedeliver(hook: Command, context: CommandContext): void {
  const redeliverCommand = hook
    .command('redeliver')
    .description('send messages of a reverse webhook again; never those from before its registration')
    .addArgument(hookNumberArgument())
    .option(
      '--from <place>',
      'all from this message on (7:42), from a time on (2026-11-20T08:00:00Z), or of the last 1h',
    )
    .option('--only <messages>', 'these messages, with commas between them, apart from the order of the others')
    .option('--dry-run', 'send nothing, and tell what would be sent')
    .action((id: number, { from, only, dryRun = false, json }: RedeliverOptions, self: Command) => {
      if ((from === undefined) === (only === undefined)) {
        throw new CommandError(exitCodes.usage, 'give one of --from and --only');
      }
      const selection =
        from === undefined ? { only: only!.split(',') } : { from: parseRedeliverFrom(from, Date.now()) };
      const lines = dryRun ? previewLines : from === undefined ? redeliverChosenMessagesLines : redeliverFromLines;
      const input = { hook: id, ...selection, dry_run: dryRun };
      return callAndPrint(context, self, { operation: redeliverHook, input, json, lines });
    });
  withExamples(withJson(redeliverCommand), [
    'klatch hook redeliver 5 --from 1h',
    'klatch hook redeliver 5 --from 7:42',
    'klatch hook redeliver 5 --only 7:42,7:45',
    'klatch hook redeliver 5 --from 1h --dry-run',
  ]);
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

const TIME_OR_AGE = 'a time with its zone such as 2026-11-20T08:00:00Z, or how long ago such as 1h (s, min, h or d)';

/** Converts an age such as `30min` into a time, and returns a time unchanged. Null: the text is neither. */
function parseAgeOrTime(text: string, nowMs: number): string | null {
  const [, count, unit] = /^(\d{1,6}) ?(s|min|h|d)$/.exec(text) ?? [];
  if (unit !== undefined) return new Date(nowMs - Number(count) * UNITS_MS[unit]!).toISOString();
  return parseTimestamp(text) === null ? null : text;
}

/**
 * Converts an age into a time, and returns a message id or a time unchanged. Refuses other texts here: the server does
 * not know ages, so its error would not mention them.
 */
function parseRedeliverFrom(text: string, nowMs: number): string {
  if (/^\d+:\d+(?:\.\d+)?$/.test(text)) return text;
  const time = parseAgeOrTime(text, nowMs);
  if (time !== null) return time;
  throw new CommandError(exitCodes.usage, `--from: give the id of a message such as 7:42, ${TIME_OR_AGE}`);
}

function previewLines({ id, group, from, messages, events }: Redelivered): string[] {
  if (messages + events === 0) return [`Reverse webhook ${id} of group ${group} would send nothing.`];
  const counts = [
    ...(from === null || messages === 0 ? [] : [`${countOf(messages, 'message')} from ${from} on`]),
    ...(events === 0 ? [] : [countOf(events, 'event')]),
  ];
  return [`Reverse webhook ${id} of group ${group} would send ${counts.join(' and ')}. Nothing was sent.`];
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function redeliverFromLines({ id, group, from, events, pending }: Redelivered): string[] {
  if (from === null && events > 0)
    return [`Reverse webhook ${id} of group ${group} sends ${countOf(events, 'event')} again.`];
  if (from === null) return [`Group ${group} has no message so late: nothing is sent again.`];
  return [
    `Reverse webhook ${id} of group ${group} sends everything from ${from} on again; ${messageCountWithVerb(pending)} pending.`,
  ];
}

function redeliverChosenMessagesLines({ id, group, pending }: Redelivered): string[] {
  return [`Reverse webhook ${id} of group ${group} sends them again; ${messageCountWithVerb(pending)} pending.`];
}

export function addDiscardBacklog(hook: Command, context: CommandContext): void {
  const discardCommand = hook
    .command('discard-backlog')
    .description('drop everything that a reverse webhook has still to deliver; it goes on with the next message')
    .addArgument(hookNumberArgument())
    .action((id: number, { json }: { json?: boolean }, self: Command) =>
      callAndPrint(context, self, {
        operation: discardHookBacklog,
        input: { hook: id },
        json,
        lines: ({ group, skipped }) => [
          skipped === 0
            ? `Reverse webhook ${id} of group ${group} has nothing to drop.`
            : `${messageCountWithVerb(skipped)} dropped: reverse webhook ${id} of group ${group} goes on with the next one.`,
        ],
      }),
    );
  withExamples(withJson(discardCommand), ['klatch hook discard-backlog 5']);
}
