/** The result of one round. */
export interface RoundResult {
  /** The number of posts, deliveries, messages delivered to clients, or pushes, depending on the benchmark. */
  readonly units: number;
  readonly seconds: number;
}

/** A benchmark that runs round by round, on a server that keeps running. */
export interface BenchSession {
  /** Prepares the data of a round, outside the measurement. */
  readonly prepare: () => Promise<void>;
  readonly round: () => Promise<RoundResult>;
  readonly stop: () => Promise<void>;
}

export async function noPreparation(): Promise<void> {}

export async function stopAll(stops: readonly (() => Promise<void>)[]): Promise<void> {
  for (const stop of stops) await stop();
}

/** Runs `open`. When it fails, runs the stop functions, so that no process keeps running. */
export async function openOrStop<T>(stops: readonly (() => Promise<void>)[], open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    await stopAll(stops);
    throw error;
  }
}
