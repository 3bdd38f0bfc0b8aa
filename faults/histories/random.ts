/**
 * A pseudo-random generator (mulberry32) that makes the same choices for the same seed, so that a history can be
 * repeated.
 */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** A random number from 0 to below 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** A random integer from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1));
  }

  /** A random element of a non-empty list. */
  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.fraction() * from.length)]!;
  }

  /** Selects each element with the same probability. */
  some<T>(from: readonly T[], probability: number): T[] {
    return from.filter(() => this.chance(probability));
  }

  /** A random choice, with a probability in proportion to its weight. */
  weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T {
    let left = this.fraction() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, choice] of choices) {
      left -= weight;
      if (left < 0) return choice;
    }
    return choices.at(-1)![1];
  }
}
