import { setTimeout as wait } from 'node:timers/promises';
import type { SourceKey } from '../model/source-key.ts';
import { Rate } from '../operations/rate.ts';

/** Answers about unknown tokens that may be held back at the same time; the next one is answered at once. */
const MAX_HELD = 1_000;
const MAX_WAIT_MS = 5_000;
const SOURCES = 10_000;

/** Slows those down who try tokens: each source gets a steady rate of refusals, and the rest of them late. */
export class UnknownTokens {
  readonly #rate: Rate<SourceKey>;
  #held = 0;

  constructor(perSecond: number) {
    this.#rate = new Rate({ perSecond, burst: perSecond * 5, keys: SOURCES });
  }

  /** Resolves when this source may be told; within 5 s. */
  async holdBack(source: SourceKey): Promise<void> {
    const waitMs = this.#rate.reserve(source, MAX_WAIT_MS) ?? MAX_WAIT_MS;
    if (waitMs === 0 || this.#held >= MAX_HELD) return;
    this.#held += 1;
    try {
      await wait(waitMs);
    } finally {
      this.#held -= 1;
    }
  }
}
