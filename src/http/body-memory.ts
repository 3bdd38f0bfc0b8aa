/** Bytes of bodies that this process reads at once: 64 of the largest that http.max-body-size allows by default. */
const MAX_TOTAL_BODY_BYTES = 64 * 1024 * 1024;

/** The body bytes that one request holds in memory. */
export interface BodyMemoryHandle {
  /** Counts bytes that arrived; when all bodies together hold too many, the largest body is aborted. */
  add(bytes: number): void;
  /** Frees its memory. May be called again. */
  release(): void;
}

interface TrackedBody {
  bytes: number;
  readonly abort: () => void;
}

/**
 * Bounds the bodies that are being read at once. At the bound it aborts the largest one: a sender that opens many
 * connections with nearly whole bodies loses those, and small posts get through.
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

  /** Starts to track a body. `abort` is called when the body has to make room; it counts for nothing then. */
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

/** The bound of the whole process, shared by all readers of bodies. */
export const processBodyMemory = new BodyMemory(MAX_TOTAL_BODY_BYTES);
