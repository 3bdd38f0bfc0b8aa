/** What may go on at once, in all and of one account. */
export class KeyedLimiter<Key> {
  readonly #total: number;
  readonly #perKey: number;
  readonly #held = new Map<Key, number>();
  #running = 0;

  constructor(bounds: { total: number; perKey: number }) {
    this.#total = bounds.total;
    this.#perKey = bounds.perKey;
  }

  get running(): number {
    return this.#running;
  }

  /** Takes a place; null: there is none. What it gives back ends the stay, and may be called again. */
  take(key: Key): (() => void) | null {
    const held = this.#held.get(key) ?? 0;
    if (this.#running >= this.#total || held >= this.#perKey) return null;
    this.#running += 1;
    this.#held.set(key, held + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#running -= 1;
      const left = this.#held.get(key)! - 1;
      if (left === 0) this.#held.delete(key);
      else this.#held.set(key, left);
    };
  }
}
