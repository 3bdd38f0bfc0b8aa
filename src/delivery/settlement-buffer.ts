import type { RetryRangeUpdate, Settlement } from '../storage/hooks/settlement.ts';
import type { Settler } from './settler.ts';

/**
 * When this many unmerged settlements wait, the buffer merges them into one. A settlement of skipped messages has no
 * attempts, so `maxUnsettledAttempts` does not bound the number of such settlements.
 */
const MAX_UNMERGED_SETTLEMENTS = 200;

/**
 * A lane's attempts that are not settled yet. While a settlement is written, the lane continues to send, up to
 * `maxUnsettledAttempts` attempts. So it does not wait for commits. Results that arrive meanwhile become one
 * settlement. After a kill of the process, the attempts in this buffer are repeated.
 */
export class SettlementBuffer {
  readonly #settler: Settler;
  readonly #maxUnsettledAttempts: number;
  readonly #onRefused: () => void;
  readonly #buffered: Settlement[] = [];
  #writing: Promise<void> | null = null;
  #unsettledAttemptCount = 0;
  #hasBeenRefused = false;

  /**
   * `onRefused`: called when a settlement was refused, or accepted only in part, since the hook's row has changed.
   * Later results are still written: PostgreSQL compares them with the row to decide whether they count.
   */
  constructor(settler: Settler, maxUnsettledAttempts: number, onRefused: () => void) {
    this.#settler = settler;
    this.#maxUnsettledAttempts = maxUnsettledAttempts;
    this.#onRefused = onRefused;
  }

  get isEmpty(): boolean {
    return this.#writing === null;
  }

  /** Adds the settlement of the newest attempt. Its progress must include that of all earlier settlements. */
  add(settlement: Settlement): void {
    this.#unsettledAttemptCount += settlement.attempts.length;
    if (this.#buffered.length === MAX_UNMERGED_SETTLEMENTS)
      this.#buffered.push(mergeSettlements(this.#buffered.splice(0)));
    this.#buffered.push(settlement);
    this.#writing ??= this.#write();
  }

  /** True: the lane must not begin another attempt before `waitForCapacity` has resolved. */
  get isFull(): boolean {
    return this.#unsettledAttemptCount >= this.#maxUnsettledAttempts;
  }

  async waitForCapacity(): Promise<void> {
    while (this.isFull && this.#writing !== null) await this.#triggerAndAwaitWrite();
  }

  /** Waits until all settlements are written. Resolves to false if any settlement of this buffer was ever refused. */
  async flush(): Promise<boolean> {
    while (this.#writing !== null) await this.#triggerAndAwaitWrite();
    return !this.#hasBeenRefused;
  }

  /**
   * Makes the settler write soon, and waits for that write. Call this again for each further write, since a write
   * clears the trigger when it begins.
   */
  async #triggerAndAwaitWrite(): Promise<void> {
    this.#settler.writeWithoutPause();
    await this.#writing;
  }

  async #write(): Promise<void> {
    const settlement = mergeSettlements(this.#buffered.splice(0));
    const accepted = await this.#settler.settle(settlement);
    this.#unsettledAttemptCount -= settlement.attempts.length;
    this.#writing = null;
    if (!accepted) {
      this.#hasBeenRefused = true;
      this.#onRefused();
    }
    if (this.#buffered.length > 0) this.#writing = this.#write();
  }
}

/**
 * Merges successive settlements of a lane. Keeps the epoch of the oldest: if another node held the lane's partition in
 * between, the settlement then does not count.
 */
function mergeSettlements(settlements: readonly Settlement[]): Settlement {
  const [oldest, newest] = [settlements[0]!, settlements.at(-1)!];
  if (oldest === newest) return newest;
  const attempts = settlements.flatMap((each) => each.attempts);
  const retries = settlements.reduce(
    (older: readonly RetryRangeUpdate[], each) => mergeRetries(older, each.retries),
    [],
  );
  return { ...newest, epoch: oldest.epoch, attempts, retries };
}

/**
 * Merges two lists of changes of retry rows. Keeps one change for each seq or rev: the newer one, unless it covers only
 * a part of the older one's range.
 */
function mergeRetries(
  older: readonly RetryRangeUpdate[],
  newer: readonly RetryRangeUpdate[],
): readonly RetryRangeUpdate[] {
  if (older.length === 0) return newer;
  const keyOf = ({ seq, rev }: RetryRangeUpdate): string => `${seq}:${rev}`;
  const byKey = new Map(older.map((retry) => [keyOf(retry), retry]));
  for (const retry of newer) {
    const before = byKey.get(keyOf(retry));
    const replacesOlder =
      before === undefined ||
      (retry.lastSeq >= before.lastSeq && retry.lastRev >= before.lastRev) ||
      retry.attempts === 0;
    if (replacesOlder) byKey.set(keyOf(retry), retry);
  }
  return [...byKey.values()];
}
