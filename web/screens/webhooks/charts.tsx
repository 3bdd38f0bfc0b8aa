import type { HookStep } from '../../core/webhooks/hook-api.ts';
import { filledSteps } from './filled-steps.ts';
import { hookWords } from '../../words/hook-words.ts';

const HOUR_MS = 3_600_000;
/** The sizes of charts, in the units of their view boxes. */
const SPARKLINE = { width: 96, height: 20 };
export const CHART_SIZE = { width: 480, height: 96 };
const GAP = 1;
const MIN_BAR = 1.5;
/** The place of durations that the server does not measure: they are longer than this. */
const UNMEASURED_MS = 10_000;

/** The requests in a period that begins at `at` (ISO 8601). */
interface Counts {
  readonly at: string;
  readonly delivered: number;
  readonly failed: number;
}

/** The delivered and failed requests of the last 24 hours. */
export function Sparkline({ hours, nowMs }: { readonly hours: readonly Counts[]; readonly nowMs: number }) {
  const delivered = hours.reduce((sum, hour) => sum + hour.delivered, 0);
  const failed = hours.reduce((sum, hour) => sum + hour.failed, 0);
  if (delivered + failed === 0) return <span class="quiet">{hookWords.noRequests}</span>;
  const bars = filledSteps(hours, { count: 24, stepMs: HOUR_MS, nowMs });
  const label = `${hookWords.requestsOfDay}: ${hookWords.requests(delivered, failed)}`;
  return (
    <span class="sparkline">
      <StackedBars counts={bars} size={SPARKLINE} label={label} />
      <span class="quiet">{hookWords.requests(delivered, failed)}</span>
    </span>
  );
}

interface StackedBarsProps {
  readonly counts: readonly (Counts | null)[];
  readonly size: { readonly width: number; readonly height: number };
  readonly label: string;
}

/** Bars of delivered requests, with failed requests on top of them. */
export function StackedBars({ counts, size: { width, height }, label }: StackedBarsProps) {
  const most = Math.max(1, ...counts.map((each) => (each === null ? 0 : each.delivered + each.failed)));
  const barWidth = width / counts.length;
  const heightOf = (count: number): number =>
    count === 0 ? 0 : Math.max(MIN_BAR, (count / most) * (height - MIN_BAR));
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <line class="axis" x1={0} x2={width} y1={height} y2={height} />
      {counts.map((each, n) => {
        if (each === null) return null;
        const [good, bad] = [heightOf(each.delivered), heightOf(each.failed)];
        const x = n * barWidth;
        const bar = Math.max(0.5, barWidth - GAP);
        return (
          <g key={each.at}>
            <rect class="delivered" x={x} y={height - good} width={bar} height={good} />
            <rect class="failed" x={x} y={height - good - bad} width={bar} height={bad} />
          </g>
        );
      })}
    </svg>
  );
}

/** The median and the 95th percentile of the time until the answer, as two lines; a gap where no request was sent. */
export function LatencyLines({
  steps,
  label,
}: {
  readonly steps: readonly (HookStep | null)[];
  readonly label: string;
}) {
  const { width, height } = CHART_SIZE;
  const durations = steps.flatMap((step) => (step === null ? [] : [step.p95_ms ?? UNMEASURED_MS]));
  const slowest = Math.max(1, ...durations);
  const place = (ms: number | null): number => height - 1 - ((ms ?? UNMEASURED_MS) / slowest) * (height - 2);
  const pathOf = (pick: (step: HookStep) => number | null): string => {
    let isPenDown = false;
    return steps
      .flatMap((step, n) => {
        const command = isPenDown ? 'L' : 'M';
        isPenDown = step !== null;
        // A lone point is drawn as a short line.
        const x = ((n + 0.5) * width) / steps.length;
        return step === null ? [] : [`${command}${x.toFixed(1)} ${place(pick(step)).toFixed(1)}h0.1`];
      })
      .join('');
  };
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <line class="axis" x1={0} x2={width} y1={height} y2={height} />
      <path class="median" d={pathOf((step) => step.p50_ms)} />
      <path class="p95" d={pathOf((step) => step.p95_ms)} />
    </svg>
  );
}
