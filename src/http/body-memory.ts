/** Bytes of bodies that this process reads at once: 64 of the largest that http.max-body allows by default. */
const MAX_BYTES = 64 * 1024 * 1024;

/** What one request has brought of its body. */
export interface HeldBody {
  /** Counts bytes that arrived; the largest body ends when there are too many of all. */
  add(bytes: number): void;
  /** Its memory is free again. May be called again. */
  release(): void;
}

interface Holding {
  bytes: number;
  readonly end: () => void;
}

/**
 * A bound on the bodies that are being read at once. When it is reached the largest one ends: whoever opens many
 * connections with nearly whole bodies ends those, and small posts get through.
 */
export class BodyMemory {
  readonly #maxBytes: number;
  readonly #bodies = new Set<Holding>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that are held. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A body begins to be read. `end` is called when it has to make room; it counts for nothing then. */
  hold(end: () => void): HeldBody {
    const body: Holding = { bytes: 0, end };
    this.#bodies.add(body);
    return {
      add: (bytes) => {
        if (!this.#bodies.has(body)) return;
        body.bytes += bytes;
        this.#bytes += bytes;
        while (this.#bytes > this.#maxBytes) this.#endLargest();
      },
      release: () => this.#release(body),
    };
  }

  #endLargest(): void {
    let largest: Holding | null = null;
    for (const body of this.#bodies) if (largest === null || body.bytes > largest.bytes) largest = body;
    this.#release(largest!);
    largest!.end();
  }

  #release(body: Holding): void {
    if (this.#bodies.delete(body)) this.#bytes -= body.bytes;
  }
}

/** Of the whole process, whatever reads a body. */
export const processBodies = new BodyMemory(MAX_BYTES);
