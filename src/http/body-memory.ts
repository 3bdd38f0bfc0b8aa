/** Bytes of bodies that this process reads at once: 64 of the largest that http.max-body-size allows by default. */
const MAX_TOTAL_BODY_BYTES = 64 * 1024 * 1024;

/** What one request has brought of its body. */
export interface BodyMemoryHandle {
  /** Counts bytes that arrived; the largest body ends when there are too many of all. */
  add(bytes: number): void;
  /** Its memory is free again. May be called again. */
  release(): void;
}

interface TrackedBody {
  bytes: number;
  readonly abort: () => void;
}

/**
 * A bound on the bodies that are being read at once. When it is reached the largest one ends: whoever opens many
 * connections with nearly whole bodies ends those, and small posts get through.
 */
export class BodyMemory {
  readonly #maxBytes: number;
  readonly #bodies = new Set<TrackedBody>();
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that are held. */
  get bytes(): number {
    return this.#usedBytes;
  }

  /** A body begins to be read. `abort` is called when it has to make room; it counts for nothing then. */
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

/** Of the whole process, whatever reads a body. */
export const processBodyMemory = new BodyMemory(MAX_TOTAL_BODY_BYTES);
