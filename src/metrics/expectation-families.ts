import { gauge, singleSample, type Family } from './family.ts';

/** Metrics on overdue expectations of groups. `overdue` null: the number has not been determined yet. */
export function expectationFamilies(expectations: { readonly overdue: number | null }): Family[] {
  return [
    gauge(
      {
        name: 'klatch_expectations_overdue',
        help: 'Expectations of groups for which no post came in time, of all servers together.',
      },
      () => (expectations.overdue === null ? [] : singleSample(expectations.overdue)),
    ),
  ];
}
