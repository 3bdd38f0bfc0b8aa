/** What one round did. */
export interface RoundResult {
  /** Posts, deliveries, messages delivered to clients, or pushes. */
  readonly units: number;
  readonly seconds: number;
}

/** A benchmark that is run a round at a time, on a server that stays. */
export interface BenchSession {
  /** Makes ready what a round works on, which is no part of what is measured. */
  readonly prepare: () => Promise<void>;
  readonly round: () => Promise<RoundResult>;
  readonly stop: () => Promise<void>;
}

/** Does nothing. */
export async function noPreparation(): Promise<void> {}

/** Stops in order what was opened. */
export async function stopAll(stops: readonly (() => Promise<void>)[]): Promise<void> {
  for (const stop of stops) await stop();
}

/** Opens something, and stops in order what was opened when that fails. */
export async function openOrStop<T>(stops: readonly (() => Promise<void>)[], open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    await stopAll(stops);
    throw error;
  }
}
