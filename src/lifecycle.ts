import type { Log } from './log.ts';

/** A part that was started and has to be stopped, by name for the log. */
export interface StartedPart {
  readonly name: string;
  readonly stop: () => Promise<void> | void;
  /** True for what lets work in hand finish: these are stopped first and together, so that they share one time-out. */
  readonly drainsFirst: boolean;
}

/** What was started, in order: it is stopped the other way round. */
export class Lifecycle {
  readonly #log: Log;
  readonly #partsNewestFirst: StartedPart[] = [];

  constructor(log: Log) {
    this.#log = log;
  }

  add(part: StartedPart): void {
    this.#partsNewestFirst.unshift(part);
  }

  /** Stops everything that is kept, whatever fails on the way. */
  async stop(): Promise<void> {
    await Promise.all(this.#partsNewestFirst.filter((part) => part.drainsFirst).map((part) => this.#stopPart(part)));
    for (const part of this.#partsNewestFirst) if (!part.drainsFirst) await this.#stopPart(part);
  }

  async #stopPart(part: StartedPart): Promise<void> {
    try {
      await part.stop();
    } catch (error) {
      this.#log.error('a part could not be stopped', { part: part.name, error });
    }
  }
}
