import { useComputed, useSignal } from '@preact/signals';
import type { Attempt, LogFilter } from '../../core/webhooks/hook-api.ts';
import { useAttempt } from '../attempt.ts';
import { Problem } from '../modal.tsx';
import { RemoteState, useRemote } from '../remote.tsx';
import { RouteLink } from '../route-link.tsx';
import { briefMomentOf, momentOf } from '../../words/dates.ts';
import { hookWords } from '../../words/hook-words.ts';
import { attemptSentence } from './hook-sentences.ts';
import { Choice } from './hook-form.tsx';
import type { HookPageProps } from './part-props.ts';

const HOUR_MS = 3_600_000;
const REREAD_MS = 5_000;
const MAX_SELECTED = 100;

const OUTCOMES: Readonly<Record<string, readonly string[] | null>> = {
  all: null,
  failed: ['failed'],
  delivered: ['delivered'],
  'set aside': ['dead_lettered', 'unregistered', 'skipped', 'expired'],
};

interface HookLogProps {
  readonly part: HookPageProps;
  /** Reads the hook again after messages were sent again. */
  readonly onRedelivered: () => Promise<void>;
}

/** The delivery log with its filters. Rows never move by themselves: newer attempts are shown on request. */
export function HookLog({ part, onRedelivered }: HookLogProps) {
  const outcome = useSignal('all');
  const period = useSignal('all');
  const seq = useSignal('');
  const filter = useComputed<LogFilter>(() => ({
    outcomes: OUTCOMES[outcome.value] ?? null,
    since: period.value === 'all' ? null : new Date(Date.now() - Number(period.value) * HOUR_MS).toISOString(),
    message: seq.value === '' ? null : `${part.entry.info.id}:${seq.value}`,
  }));
  return (
    <section>
      <h4>{hookWords.log}</h4>
      <div class="filters">
        <Choice label={hookWords.outcome} value={outcome} choices={hookWords.outcomes} />
        <Choice label={hookWords.logSince} value={period} choices={hookWords.logPeriods} />
        <label>
          {hookWords.message}
          <input
            type="text"
            inputMode="numeric"
            autocomplete="off"
            value={seq.value}
            onInput={(event) => {
              seq.value = event.currentTarget.value.replace(/\D/g, '').slice(0, 15);
            }}
          />
        </label>
      </div>
      <LogRows
        key={`${outcome.value} ${period.value} ${seq.value}`}
        part={part}
        filter={filter.value}
        onRedelivered={onRedelivered}
      />
    </section>
  );
}

interface LogRowsProps extends HookLogProps {
  readonly filter: LogFilter;
}

function LogRows({ part, filter, onRedelivered }: LogRowsProps) {
  const { chat, api, hook } = part;
  const log = useRemote(() => api.log(hook, filter, null), { chat });
  const newest = useRemote(() => api.log(hook, filter, null), { chat, rereadEveryMs: REREAD_MS });
  const { problem, isBusy, run } = useAttempt();
  const selected = useSignal<readonly string[]>([]);
  const attempts = log.value?.attempts ?? [];
  const first = attempts[0];
  const newerCount = countNewer(newest.value?.attempts ?? [], first);
  const next = log.value?.next ?? null;
  const older = (): void =>
    void log.extend(async (shown) => {
      const page = await api.log(hook, filter, shown.next);
      return { attempts: [...shown.attempts, ...page.attempts], next: page.next };
    });
  const sendAgain = (ids: readonly string[]): void =>
    void run(async () => {
      await api.redeliver(hook, { only: ids });
      selected.value = [];
      await onRedelivered();
    });
  return (
    <>
      <RemoteState remote={log} />
      <Problem sentence={problem} />
      {log.value !== null && attempts.length === 0 ? <p class="quiet">{hookWords.logEmpty}</p> : null}
      <div class="panel-buttons">
        {newerCount === 0 ? null : (
          <button type="button" disabled={log.isBusy} onClick={() => void log.read()}>
            {newerCount === null ? hookWords.newerMany : hookWords.newer(newerCount)}
          </button>
        )}
        {attempts.length === 0 ? null : (
          <button
            type="button"
            onClick={() => {
              selected.value = idsOf(attempts);
            }}
          >
            {hookWords.selectAll(idsOf(attempts).length)}
          </button>
        )}
        {selected.value.length === 0 ? null : (
          <button type="button" disabled={isBusy} onClick={() => sendAgain(selected.value)}>
            {hookWords.sendSelected(selected.value.length)}
          </button>
        )}
      </div>
      {attempts.length === 0 ? null : <LogList part={part} attempts={attempts} selected={selected} />}
      {next === null ? null : (
        <button type="button" disabled={log.isBusy} onClick={older}>
          {hookWords.older}
        </button>
      )}
    </>
  );
}

/** The ids of the messages of some attempts, each once and at most as many as one request sends again. */
function idsOf(attempts: readonly Attempt[]): string[] {
  return [...new Set(attempts.map(({ message_id: id }) => id))].slice(0, MAX_SELECTED);
}

/** How many of the newest attempts are newer than the first one shown; null: more than a page. */
function countNewer(newest: readonly Attempt[], firstShown: Attempt | undefined): number | null {
  if (firstShown === undefined) return newest.length;
  const index = newest.findIndex((attempt) => keyOf(attempt) === keyOf(firstShown));
  return index === -1 && newest.length > 0 ? null : Math.max(0, index);
}

function keyOf({ at, seq, rev, attempt }: Attempt): string {
  return `${at} ${seq} ${rev ?? 0} ${attempt}`;
}

interface LogListProps {
  readonly part: HookPageProps;
  readonly attempts: readonly Attempt[];
  /** A signal with the ids of the selected messages. */
  readonly selected: { value: readonly string[] };
}

function LogList({ part, attempts, selected }: LogListProps) {
  const toggle = (id: string, isSelected: boolean): void => {
    const others = selected.value.filter((each) => each !== id);
    selected.value = isSelected ? [...others, id].slice(-MAX_SELECTED) : others;
  };
  return (
    <ol class="log-rows" aria-label={hookWords.log}>
      {attempts.map((attempt) => (
        <LogRow
          key={keyOf(attempt)}
          part={part}
          attempt={attempt}
          isSelected={selected.value.includes(attempt.message_id)}
          onSelect={(isSelected) => toggle(attempt.message_id, isSelected)}
        />
      ))}
    </ol>
  );
}

interface LogRowProps {
  readonly part: HookPageProps;
  readonly attempt: Attempt;
  readonly isSelected: boolean;
  readonly onSelect: (isSelected: boolean) => void;
}

function LogRow({ part, attempt, isSelected, onSelect }: LogRowProps) {
  const { state } = part;
  const { message_id: id, seq, last_seq: last, at } = attempt;
  const route = { screen: 'conversation', conversation: part.entry.info.id, seq } as const;
  return (
    <li>
      <input
        type="checkbox"
        aria-label={hookWords.sendOne(id)}
        checked={isSelected}
        onChange={(event) => onSelect(event.currentTarget.checked)}
      />
      <div>
        <span class={`log-result ${attempt.outcome}`}>{attemptSentence(attempt)}</span>
        <span class="quiet">
          <RouteLink
            state={state}
            route={route}
            label={hookWords.messageRange(seq, last)}
            onFollow={() => state.go(route)}
          />
          {` · ${hookWords.attemptOf(attempt.attempt)} · ${hookWords.within(attempt.duration_ms)} · `}
          <time dateTime={at} title={momentOf(at)}>
            {briefMomentOf(at)}
          </time>
        </span>
      </div>
    </li>
  );
}
