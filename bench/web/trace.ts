import type { Page } from 'playwright-core';
import { percentile } from '../support/report.ts';

const MAIN_THREAD = 'CrRendererMain';
const TASK = 'RunTask';
/**
 * The name of the trace event at the end of each frame that is drawn. Chromium 156 no longer has
 * `BeginMainThreadFrame`.
 */
const FRAME = 'Commit';
const CATEGORIES = ['devtools.timeline', 'disabled-by-default-devtools.timeline', 'devtools.timeline.frame'];

/** An event of Chromium's trace. Times are in microseconds; `tdur` is processor time. */
export interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

/** Traces the browser while `work` runs. */
export async function traced(page: Page, work: () => Promise<void>): Promise<TraceEvent[]> {
  const browser = page.context().browser()!;
  await browser.startTracing(page, { categories: CATEGORIES });
  let trace: Buffer;
  try {
    await work();
  } finally {
    trace = await browser.stopTracing();
  }
  return (JSON.parse(trace.toString('utf8')) as { traceEvents: TraceEvent[] }).traceEvents;
}

/**
 * Returns the work of the main thread for a frame (p95) and its longest task, in ms of processor time. Processor time
 * excludes the time in which the thread waits for a processor on a busy machine. The work for a frame is that of all
 * tasks from the one with its `Commit` to the one before the next `Commit`.
 */
export function frameTimes(events: readonly TraceEvent[]): { workMs: number; longestMs: number } {
  const mine = events.filter(isOf(busiestMainThread(events)));
  const tasks = mine.filter(({ name, ph }) => name === TASK && ph === 'X').sort((a, b) => a.ts - b.ts);
  const begins = mine.filter(({ name }) => name === FRAME).map(({ ts }) => ts);
  begins.sort((a, b) => a - b);
  const work: number[] = [];
  let next = 0;
  for (const task of tasks) {
    const end = task.ts + (task.dur ?? 0);
    while (next < begins.length && begins[next]! < task.ts) next += 1;
    if (next < begins.length && begins[next]! <= end) work.push(0);
    if (work.length > 0) work[work.length - 1]! += timeOf(task);
  }
  if (work.length === 0) throw new Error('the trace has no frames');
  return { workMs: percentile(work, 0.95), longestMs: tasks.reduce((most, each) => Math.max(most, timeOf(each)), 0) };
}

function timeOf({ tdur, dur = 0 }: TraceEvent): number {
  return (tdur ?? dur) / 1_000;
}

const isOf =
  ({ pid, tid }: TraceEvent) =>
  (event: TraceEvent): boolean =>
    event.pid === pid && event.tid === tid;

/** Finds the main thread of the measured page: other pages of the browser are idle during the trace. */
function busiestMainThread(events: readonly TraceEvent[]): TraceEvent {
  const threads = events.filter(({ name, args }) => name === 'thread_name' && args?.name === MAIN_THREAD);
  const busy = (thread: TraceEvent): number =>
    events.filter(isOf(thread)).reduce((sum, event) => sum + (event.name === TASK ? timeOf(event) : 0), 0);
  const [first] = threads.map((thread) => ({ thread, ms: busy(thread) })).sort((a, b) => b.ms - a.ms);
  if (first === undefined) throw new Error('the trace has no main thread');
  return first.thread;
}
