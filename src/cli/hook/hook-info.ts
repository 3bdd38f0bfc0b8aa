import type { hookInfo } from '../../operations/hooks/hook-list.ts';
import { errorSentence } from '../../../client/core/delivery-sentences.ts';
import { attemptedRange } from './hook-format.ts';
import { ago, formatDuration, formatFields, formatTable } from '../../../client/terminal/table.ts';

type HookInfo = Awaited<ReturnType<(typeof hookInfo)['run']>>;

/** The lines that show everything about a hook: its fields, and a table of its last attempts. */
export function hookLines(hook: HookInfo): string[] {
  const nowMs = Date.now();
  const fields = formatFields([
    ['id', hook.id],
    ['group', `${hook.group} (${hook.group_title})`],
    ['url', hook.url],
    ['description', hook.description],
    ['created', hook.created_at],
    ...settingFields(hook),
    ['state', hook.state],
    ...removalFields(hook),
    ...progressFields(hook, nowMs),
  ]);
  return [...fields, '', ...attemptLines(hook)];
}

type Field = readonly [string, string | number | null];

function settingFields(hook: HookInfo): Field[] {
  const rotation: Field[] = hook.old_secret_until === null ? [] : [['old secret until', hook.old_secret_until]];
  const { triggers, max_age: maxAgeS } = hook;
  return [
    ['format', hook.format],
    ['order', hook.order],
    ['batch', hook.batch],
    ['signature', hook.signature],
    ['skip', hook.skip.length === 0 ? 'nothing' : hook.skip.join(', ')],
    ...(hook.format === 'klatch'
      ? []
      : ([
          ['triggers', triggers.join(' ') || 'none'],
          ['max age', maxAgeS === null ? 'none' : formatDuration(maxAgeS * 1_000)],
        ] satisfies Field[])),
    ['events', hook.events.length === 0 ? 'none' : hook.events.join(', ')],
    ...rotation,
  ];
}

function removalFields({ removed }: HookInfo): Field[] {
  if (removed === null) return [];
  const by = removed.by === 'target' ? 'by a 410 of its target' : 'by its group or an administrator';
  return [
    ['removed', `${removed.at}, ${by}`],
    ['restorable', removed.restorable_until === null ? 'no' : `until ${removed.restorable_until}`],
  ];
}

function progressFields(hook: HookInfo, nowMs: number): Field[] {
  const momentWithAge = (moment: string | null): string | null =>
    moment === null ? null : `${moment}, ${ago(moment, nowMs)}`;
  const error = hook.last_error;
  return [
    ['start', hook.start_seq],
    ['cursor', `${hook.cursor} of ${hook.last_seq}`],
    ...(hook.event_cursor === null ? [] : ([['event cursor', `r${hook.event_cursor}`]] satisfies Field[])),
    ['pending', hook.pending],
    ['oldest pending', momentWithAge(hook.oldest_pending_at)],
    ['failing since', momentWithAge(hook.failing_since)],
    ['failures', hook.failures],
    ['next attempt', hook.next_attempt_at],
    ['last success', momentWithAge(hook.last_success_at)],
    ['last error', error === null ? null : `${errorSentence(error)}, ${ago(error.at, nowMs)}`],
    ['error details', error === null ? null : `${error.at}, ${categoryWithCode(error)}`],
  ];
}

function attemptLines({ attempts }: HookInfo): string[] {
  if (attempts.length === 0) return ['The delivery log has no attempts of it.'];
  const rows = attempts.map((attempt) => [
    attempt.at,
    attemptedRange(attempt),
    attempt.attempt,
    attempt.outcome,
    categoryWithCode(attempt),
    `${attempt.duration_ms} ms`,
  ]);
  return formatTable(['AT', 'MESSAGE', 'ATTEMPT', 'OUTCOME', 'RESULT', 'TOOK'], rows);
}

/** The category and the status code of an error, as the API names them. */
function categoryWithCode({ category, code }: { category: string | null; code: number | null }): string {
  return [category, code].filter((part) => part !== null).join(' ') || '-';
}
