import { gauge, singleSample, type MetricFamily } from './family.ts';

/** Metrics on overdue expectations of groups. `overdueCount` null: the number has not been determined yet. */
export function expectationFamilies(expectations: { readonly overdueCount: number | null }): MetricFamily[] {
  return [
    gauge(
      {
        name: 'klatch_expectations_overdue',
        help: 'Expectations of groups for which no post came in time, of all servers together.',
      },
      () => (expectations.overdueCount === null ? [] : singleSample(expectations.overdueCount)),
    ),
  ];
}
