/**
 * The most bytes of bodies that are being read in this process: 64 bodies of the largest size that http.max-body-size
 * allows by default.
 */
const MAX_TOTAL_BODY_BYTES = 64 * 1024 * 1024;

/** Counts the bytes that have arrived of one request's body. */
export interface BodyMemoryHandle {
  /** Adds arrived bytes. While all bodies together exceed the limit, the largest body is aborted. */
  add(bytes: number): void;
  /** Subtracts the body's bytes from the total. A second call does nothing. */
  release(): void;
}

interface TrackedBody {
  bytes: number;
  readonly abort: () => void;
}

/**
 * Bounds the bytes of all bodies that are being read. Above the bound, the largest body is aborted: a client with many
 * nearly complete bodies loses them, and small posts get through.
 */
export class BodyMemory {
  readonly #maxBytes: number;
  readonly #bodies = new Set<TrackedBody>();
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The bytes that have arrived of all bodies that are being read. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /**
   * Tracks a body that begins to be read. `abort` is called if the body has to make room for others, after the body's
   * bytes were subtracted from the total.
   */
  track(abort: () => void): BodyMemoryHandle {
    const body: TrackedBody = { bytes: 0, abort };
    this.#bodies.add(body);
    return {
      add: (bytes) => {
        if (!this.#bodies.has(body)) return;
        body.bytes += bytes;
        this.#usedBytes += bytes;
        while (this.#usedBytes > this.#maxBytes) this.#abortLargest();
      },
      release: () => this.#release(body),
    };
  }

  #abortLargest(): void {
    let largest: TrackedBody | null = null;
    for (const body of this.#bodies) if (largest === null || body.bytes > largest.bytes) largest = body;
    this.#release(largest!);
    largest!.abort();
  }

  #release(body: TrackedBody): void {
    if (this.#bodies.delete(body)) this.#usedBytes -= body.bytes;
  }
}

/** All code in this process that reads bodies shares this bound. */
export const processBodyMemory = new BodyMemory(MAX_TOTAL_BODY_BYTES);
