/** Limits the tasks that run at once, in total and per key. */
export class KeyedLimiter<Key> {
  readonly #maxTotal: number;
  readonly #maxPerKey: number;
  readonly #heldSlotsByKey = new Map<Key, number>();
  #runningTasks = 0;

  constructor(bounds: { total: number; perKey: number }) {
    this.#maxTotal = bounds.total;
    this.#maxPerKey = bounds.perKey;
  }

  get running(): number {
    return this.#runningTasks;
  }

  /**
   * Takes a slot; null: no slot is free, in total or for this key. The returned function releases the slot; repeated
   * calls of that function do nothing.
   */
  take(key: Key): (() => void) | null {
    const held = this.#heldSlotsByKey.get(key) ?? 0;
    if (this.#runningTasks >= this.#maxTotal || held >= this.#maxPerKey) return null;
    this.#runningTasks += 1;
    this.#heldSlotsByKey.set(key, held + 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#runningTasks -= 1;
      const left = this.#heldSlotsByKey.get(key)! - 1;
      if (left === 0) this.#heldSlotsByKey.delete(key);
      else this.#heldSlotsByKey.set(key, left);
    };
  }
}
