import { useSignal } from '@preact/signals';
import type { HookStep, StatsRange } from '../../core/webhooks/hook-api.ts';
import { RemoteState, useRemote } from '../remote.tsx';
import { shortMomentOf, momentOf } from '../../words/dates.ts';
import { hookWords } from '../../words/hook-words.ts';
import { CHART_SIZE, LatencyLines, StackedBars } from './charts.tsx';
import { filledSteps } from './filled-steps.ts';
import { Choice } from './hook-form.tsx';
import type { HookPageProps } from './part-props.ts';

/** The counts of requests change every five minutes at most for a chart; a minute shows new ones soon enough. */
const REREAD_MS = 60_000;
const HOUR_MS = 3_600_000;

/** The periods of the charts: a step is so long that a chart has some hundred bars at most. */
const RANGES: Readonly<Record<string, StatsRange & { readonly stepMs: number }>> = {
  '24': { hours: 24, step: '5m', stepMs: HOUR_MS / 12 },
  '168': { hours: 168, step: '1h', stepMs: HOUR_MS },
};

/** The requests to the hook and their durations over time, as charts and as a table. */
export function HookCharts({ part }: { readonly part: HookPageProps }) {
  const { chat, api, hook } = part;
  const period = useSignal('24');
  // The period stays with its counts: until the next answer, the charts show the former period.
  const load = async () => {
    const name = period.value;
    const { hours, step } = RANGES[name]!;
    return { name, steps: await api.steps(hook, { hours, step }) };
  };
  const remote = useRemote(load, { chat, key: `${hook} ${period.value}`, rereadEveryMs: REREAD_MS });
  return (
    <section>
      <h4>{hookWords.requestsOverTime}</h4>
      <div class="filters">
        <Choice label={hookWords.range} value={period} choices={hookWords.ranges} />
      </div>
      <RemoteState remote={remote} />
      {remote.value === null ? null : <Charts {...remote.value} />}
    </section>
  );
}

/** `name`: the name of the period of the steps. */
function Charts({ name, steps: found }: { readonly name: string; readonly steps: readonly HookStep[] }) {
  const range = RANGES[name]!;
  const filled = filledSteps(found, {
    count: (range.hours * HOUR_MS) / range.stepMs,
    stepMs: range.stepMs,
    nowMs: Date.now(),
  });
  const delivered = found.reduce((sum, step) => sum + step.delivered, 0);
  const failed = found.reduce((sum, step) => sum + step.failed, 0);
  const start = hookWords.ago(hookWords.ranges[name]!);
  return (
    <>
      <p class="quiet">{hookWords.requests(delivered, failed)}</p>
      <StackedBars
        counts={filled}
        size={CHART_SIZE}
        label={`${hookWords.requestsOverTime}: ${hookWords.requests(delivered, failed)}`}
      />
      <ChartEnds first={start} highest={hookWords.most(mostRequests(found))} />
      <h4>{hookWords.latency}</h4>
      <LatencyLines steps={filled} label={hookWords.latency} />
      <ChartEnds first={start} highest={hookWords.slowest(slowestMs(found))} />
      <p class="quiet legend">
        <span class="median">{hookWords.median}</span> <span class="p95">{hookWords.p95}</span>
      </p>
      {found.length === 0 ? null : <StepTable steps={found} />}
    </>
  );
}

function mostRequests(steps: readonly HookStep[]): number {
  return Math.max(0, ...steps.map(({ delivered, failed }) => delivered + failed));
}

/** The highest 95th percentile in ms; null: more than the server measures. */
function slowestMs(steps: readonly HookStep[]): number | null {
  const slowest = steps.map(({ p95_ms: p95 }) => p95);
  return slowest.includes(null) ? null : Math.max(0, ...slowest.map((ms) => ms ?? 0));
}

/** The ends of the axes of a chart: its first and last moment, and its highest value. */
function ChartEnds({ first, highest }: { readonly first: string; readonly highest: string }) {
  return (
    <p class="quiet chart-ends">
      <span>{first}</span>
      <span>{highest}</span>
      <span>{hookWords.now}</span>
    </p>
  );
}

function StepTable({ steps }: { readonly steps: readonly HookStep[] }) {
  return (
    <details>
      <summary>{hookWords.asTable}</summary>
      {/* The roles are given, because a narrow page draws rows as blocks, which would end them. */}
      <table class="steps" role="table" aria-label={hookWords.requestsOverTime}>
        <thead role="rowgroup">
          <tr role="row">
            {[hookWords.time, hookWords.delivered, hookWords.failed, hookWords.median, hookWords.p95].map((head) => (
              <th key={head} scope="col" role="columnheader">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {steps.toReversed().map((step) => (
            <StepRow key={step.at} step={step} />
          ))}
        </tbody>
      </table>
    </details>
  );
}

function StepRow({ step: { at, delivered, failed, p50_ms: p50, p95_ms: p95 } }: { readonly step: HookStep }) {
  const cells = [
    [hookWords.delivered, delivered],
    [hookWords.failed, failed],
    [hookWords.median, hookWords.within(p50)],
    [hookWords.p95, hookWords.within(p95)],
  ] as const;
  return (
    <tr role="row">
      <td role="cell" title={momentOf(at)}>
        {shortMomentOf(at)}
      </td>
      {cells.map(([name, value]) => (
        <td key={name} role="cell" data-name={name}>
          {value}
        </td>
      ))}
    </tr>
  );
}
