/** Bytes of bodies that this process reads at once: 64 of the largest that http.max-body-size allows by default. */
const MAX_TOTAL_BODY_BYTES = 64 * 1024 * 1024;

/** The count of the bytes that one request's body has brought so far. */
export interface BodyMemoryHandle {
  /** Counts bytes that arrived. The largest body is aborted when all bodies together have too many. */
  add(bytes: number): void;
  /** The body no longer counts. May be called again. */
  release(): void;
}

interface TrackedBody {
  bytes: number;
  readonly abort: () => void;
}

/**
 * A bound on the bodies that are being read at once. When it is exceeded, the largest body is aborted: a client with
 * many nearly complete bodies loses those, and small posts get through.
 */
export class BodyMemory {
  readonly #maxBytes: number;
  readonly #bodies = new Set<TrackedBody>();
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of all tracked bodies. */
  get bytes(): number {
    return this.#usedBytes;
  }

  /** Tracks a body that begins to be read. `abort` is called when it has to make room; it no longer counts then. */
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

/** Shared by everything in this process that reads a body. */
export const processBodyMemory = new BodyMemory(MAX_TOTAL_BODY_BYTES);
