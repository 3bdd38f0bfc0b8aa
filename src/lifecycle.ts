import type { Log } from './log.ts';

/** A started part of the server that has to be stopped. Its name is for the log. */
export interface StartedPart {
  readonly name: string;
  readonly stop: () => Promise<void> | void;
  /**
   * True for a part that lets running work finish. Such parts are stopped first and at the same time, so that they
   * share one time-out.
   */
  readonly drainsFirst: boolean;
}

/**
 * Knows the started parts of the server, and stops them. Those that let running work finish are stopped first, the
 * others in the opposite order of their start.
 */
export class Lifecycle {
  readonly #log: Log;
  readonly #partsNewestFirst: StartedPart[] = [];

  constructor(log: Log) {
    this.#log = log;
  }

  add(part: StartedPart): void {
    this.#partsNewestFirst.unshift(part);
  }

  /** Stops all parts, even if the stop of some fails. */
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
