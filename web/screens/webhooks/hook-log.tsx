import { useComputed, useSignal } from '@preact/signals';
import { ATTEMPTS_PER_PAGE, type Attempt, type LogFilter } from '../../core/webhooks/hook-api.ts';
import { useAttempt } from '../attempt.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import { Problem } from '../modal.tsx';
import { RemoteState, useRemote } from '../remote.tsx';
import { RouteLink } from '../route-link.tsx';
import { shortMomentOf, momentOf } from '../../words/dates.ts';
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
  const selectable = idsOf(attempts);
  return (
    <>
      <RemoteState remote={log} />
      {log.value !== null && attempts.length === 0 ? <p class="quiet">{hookWords.logEmpty}</p> : null}
      <div class="panel-buttons">
        {newerCount === 0 ? null : (
          <button type="button" disabled={log.isBusy} onClick={() => void log.read()}>
            {newerCount === null ? hookWords.newerMany : hookWords.newer(newerCount)}
          </button>
        )}
        {selectable.length === 0 ? null : (
          <button
            type="button"
            onClick={() => {
              selected.value = selectable;
            }}
          >
            {hookWords.selectAll(selectable.length)}
          </button>
        )}
      </div>
      <SendSelected part={part} selected={selected} onRedelivered={onRedelivered} />
      {attempts.length === 0 ? null : <LogList part={part} attempts={attempts} selected={selected} />}
      {next === null ? null : (
        <button type="button" disabled={log.isBusy} onClick={older}>
          {hookWords.older}
        </button>
      )}
    </>
  );
}

interface SendSelectedProps extends HookLogProps {
  /** A signal with the ids of the selected messages. */
  readonly selected: { value: readonly string[] };
}

/** The button that sends the selected messages again, and the result. */
function SendSelected({ part: { api, hook }, selected, onRedelivered }: SendSelectedProps) {
  const { problem, isBusy, run } = useAttempt();
  const result = useSignal('');
  const send = (): void =>
    void run(async () => {
      const { pending } = await api.redeliver(hook, { only: selected.value });
      selected.value = [];
      result.value = hookWords.redelivered(pending);
      await onRedelivered();
    });
  return (
    <>
      <Problem sentence={problem} />
      <p role="status">{result}</p>
      {selected.value.length === 0 ? null : (
        <ConfirmButton
          label={hookWords.sendSelected(selected.value.length)}
          question={hookWords.sendSelectedQuestion}
          isBusy={isBusy}
          onConfirm={send}
        />
      )}
    </>
  );
}

/** The ids of the messages of some attempts, each once and at most as many as one request sends again. */
function idsOf(attempts: readonly Attempt[]): string[] {
  return [...new Set(attempts.flatMap(messageIdsOf))].slice(0, MAX_SELECTED);
}

/**
 * The ids of all messages of an attempt. Empty for an event, which the server cannot send alone, and for messages that
 * a retention rule removed.
 */
function messageIdsOf({ message_id: first, seq, last_seq: last, rev, outcome }: Attempt): string[] {
  if (rev !== undefined || outcome === 'expired') return [];
  const [, group, epochSuffix = ''] = /^(\d+):\d+(\.\d+)?$/.exec(first) ?? [];
  const count = Math.min(last - seq + 1, MAX_SELECTED);
  return Array.from({ length: count }, (_, n) => `${group}:${seq + n}${epochSuffix}`);
}

/** How many of the newest attempts are newer than the first one shown; null: more than a page. */
function countNewer(newest: readonly Attempt[], firstShown: Attempt | undefined): number | null {
  const newer = newest.filter(({ at }) => firstShown === undefined || at > firstShown.at);
  return newer.length === newest.length && newest.length >= ATTEMPTS_PER_PAGE ? null : newer.length;
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
  const toggle = (ids: readonly string[], isSelected: boolean): void => {
    const others = selected.value.filter((each) => !ids.includes(each));
    selected.value = isSelected ? [...others, ...ids].slice(0, MAX_SELECTED) : others;
  };
  return (
    <ol class="log-rows" aria-label={hookWords.log}>
      {attempts.map((attempt) => {
        const ids = messageIdsOf(attempt);
        return (
          <LogRow
            key={keyOf(attempt)}
            part={part}
            attempt={attempt}
            isSelected={ids.length === 0 ? null : ids.every((id) => selected.value.includes(id))}
            onSelect={(isSelected) => toggle(ids, isSelected)}
          />
        );
      })}
    </ol>
  );
}

interface LogRowProps {
  readonly part: HookPageProps;
  readonly attempt: Attempt;
  /** Null: the attempt has no message that can be sent again. */
  readonly isSelected: boolean | null;
  readonly onSelect: (isSelected: boolean) => void;
}

function LogRow({ part, attempt, isSelected, onSelect }: LogRowProps) {
  const { state } = part;
  const { seq, last_seq: last, at } = attempt;
  const route = { screen: 'conversation', conversation: part.entry.info.id, seq } as const;
  return (
    <li>
      {isSelected === null ? (
        <span class="no-choice" />
      ) : (
        <input
          type="checkbox"
          aria-label={hookWords.sendOne(hookWords.messageRange(seq, last))}
          checked={isSelected}
          onChange={(event) => onSelect(event.currentTarget.checked)}
        />
      )}
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
            {shortMomentOf(at)}
          </time>
        </span>
      </div>
    </li>
  );
}
