import type { BenchProcess } from '../process.ts';
import type { ScheduleResult } from './schedule.ts';

/** The records of the program `arrivals.ts` since its last answer. */
export interface Arrivals {
  /**
   * The messages that arrived at healthy and parting receivers. Times: of arrival on the machine's monotonic clock, and
   * since the `sent_at` of the message.
   */
  readonly noted: readonly (readonly [id: string, arrivedMs: number, sinceSentMs: number])[];
  readonly requests: Readonly<Record<'healthy' | 'parting' | 'slow' | 'hung', number>>;
}

/** Milliseconds until the arrival of each post; infinite for one that has not arrived. */
export interface Latencies {
  readonly sincePosted: readonly number[];
  /** From the `sent_at` of the message, which the database sets right before its commit; in whole milliseconds. */
  readonly sinceSent: readonly number[];
  /** From the answer 200, which follows the commit. Negative if the delivery arrived before that answer. */
  readonly sinceAnswer: readonly number[];
}

export async function takeArrivals(receivers: BenchProcess): Promise<Arrivals> {
  return JSON.parse(await receivers.ask('take')) as Arrivals;
}

/** Joins the posts and their arrivals by the ids of the messages. */
export function latenciesOf({ posts }: ScheduleResult, { noted }: Arrivals): Latencies {
  const never = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY] as const;
  const arrivals = new Map(noted.map(([id, ...times]) => [id, times] as const));
  const timesOf = (id: string): readonly [number, number] => arrivals.get(id) ?? never;
  return {
    sincePosted: posts.map(({ id, postedMs }) => timesOf(id)[0] - postedMs),
    sinceSent: posts.map(({ id }) => timesOf(id)[1]),
    sinceAnswer: posts.map(({ id, answeredMs }) => timesOf(id)[0] - answeredMs),
  };
}
