/**
 * One entry for each step up to now, also for steps without requests, which the server leaves out. `stepMs` divides a
 * day, and steps begin at multiples of it.
 */
export function filledSteps<Step extends { readonly at: string }>(
  steps: readonly Step[],
  { count, stepMs, nowMs }: { readonly count: number; readonly stepMs: number; readonly nowMs: number },
): (Step | null)[] {
  const byStart = new Map(steps.map((step) => [Math.floor(Date.parse(step.at) / stepMs), step]));
  const last = Math.floor(nowMs / stepMs);
  return Array.from({ length: count }, (_, n) => byStart.get(last - count + 1 + n) ?? null);
}
