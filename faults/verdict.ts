import type { HookRecord } from './recorder.ts';

/** The messages that one hook has to get: the posts of its group, with the `seq` of each answer. */
export interface Expectation {
  readonly record: HookRecord;
  readonly acknowledged: ReadonlyMap<number, number>;
  /** The number of duplicates that the lane of the hook may deliver in one run. */
  readonly allowedDuplicates: number;
}

export interface Verdict {
  /** The number of posts answered 200 whose message did not arrive, summed over the hooks of the group. */
  readonly lost: number;
  /** The sum over all strict lanes of messages and events that came after a later one. */
  readonly outOfOrder: number;
  readonly duplicates: number;
  /** The most duplicates of one lane in one run, and their limit, for the lane that came nearest to its limit. */
  readonly worstDuplicates: number;
  readonly allowedDuplicates: number;
  /** All violations, in words; empty when the system survived the fault. */
  readonly violations: readonly string[];
}

/** Compares the arrivals at receivers with the answers to callers. */
export function judge(expectations: readonly Expectation[]): Verdict {
  const violations = new Set<string>();
  let lost = 0;
  let outOfOrder = 0;
  let duplicates = 0;
  let worstDuplicates = 0;
  let allowed = expectations[0]?.allowedDuplicates ?? 0;
  for (const { record, acknowledged, allowedDuplicates } of expectations) {
    lost += lostOf(record, acknowledged);
    if (record.strict) outOfOrder += record.outOfOrder;
    duplicates += record.duplicates;
    // Compares two shares of their limits by multiplication and not by division, since a limit may be 0.
    if (record.worstDuplicates * allowed > worstDuplicates * allowedDuplicates || allowedDuplicates === 0) {
      worstDuplicates = Math.max(allowedDuplicates === 0 ? worstDuplicates : 0, record.worstDuplicates);
      allowed = allowedDuplicates;
    }
    if (record.worstDuplicates > allowedDuplicates) {
      violations.add(`a lane sent ${record.worstDuplicates} messages again in a run, ${allowedDuplicates} are allowed`);
    }
    if (record.changed > 0) violations.add('a message came again under its number with another text');
    const posts = record.posts();
    if (new Set(posts).size < posts.length)
      violations.add('a post repeated with its Idempotency-Key was written twice');
  }
  if (lost > 0) violations.add(`${lost} messages were lost`);
  if (outOfOrder > 0) violations.add(`${outOfOrder} messages came after a later one`);
  return { lost, outOfOrder, duplicates, worstDuplicates, allowedDuplicates: allowed, violations: [...violations] };
}

function lostOf(record: HookRecord, acknowledged: ReadonlyMap<number, number>): number {
  let lost = 0;
  for (const [post, seq] of acknowledged) if (record.postAt(seq) !== post) lost += 1;
  return lost;
}
