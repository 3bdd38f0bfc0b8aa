/** The smallest size of the buffer after a second chunk has come. */
const MIN_GROWN_BYTES = 16 * 1024;

/**
 * Joins the chunks of a body in one buffer. Each separate chunk would take some 130 bytes more than it holds, and a
 * sender may send a million chunks of one byte.
 */
export class GrowingBuffer {
  #buffer: Buffer | null = null;
  #bytes = 0;

  append(chunk: Buffer): void {
    const bytes = this.#bytes + chunk.length;
    // Most bodies are one chunk, which is not copied.
    if (this.#bytes === 0) this.#buffer = chunk;
    else {
      if (this.#buffer!.length < bytes) this.#growToHold(bytes);
      chunk.copy(this.#buffer!, this.#bytes);
    }
    this.#bytes = bytes;
  }

  /** All bytes so far, without a copy. */
  toBuffer(): Buffer {
    return this.#buffer?.subarray(0, this.#bytes) ?? Buffer.alloc(0);
  }

  #growToHold(bytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(MIN_GROWN_BYTES, 2 * bytes));
    this.#buffer!.copy(larger, 0, 0, this.#bytes);
    this.#buffer = larger;
  }
}
