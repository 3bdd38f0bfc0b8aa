/** Limits the tasks that run at once, in total and per key. */
export class KeyedLimiter<Key> {
  readonly #maxTotal: number;
  readonly #maxPerKey: number;
  readonly #heldByKey = new Map<Key, number>();
  #running = 0;

  constructor(bounds: { total: number; perKey: number }) {
    this.#maxTotal = bounds.total;
    this.#maxPerKey = bounds.perKey;
  }

  get running(): number {
    return this.#running;
  }

  /**
   * Takes a slot; null: no slot is free, in total or for this key. The returned function releases the slot; repeated
   * calls of that function do nothing.
   */
  take(key: Key): (() => void) | null {
    const held = this.#heldByKey.get(key) ?? 0;
    if (this.#running >= this.#maxTotal || held >= this.#maxPerKey) return null;
    this.#running += 1;
    this.#heldByKey.set(key, held + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#running -= 1;
      const left = this.#heldByKey.get(key)! - 1;
      if (left === 0) this.#heldByKey.delete(key);
      else this.#heldByKey.set(key, left);
    };
  }
}
