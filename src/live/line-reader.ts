import { isUtf8 } from 'node:buffer';

const LF = 0x0a;
const CR = 0x0d;
const FIRST_BYTES = 512;
const TOO_LARGE = { problem: 'tooLarge' } as const;

/** What a chunk brought: a line, or why there is none. */
export type LineEvent = { readonly text: string } | { readonly problem: 'tooLarge' | 'notJson' };

/**
 * Lines out of chunks that are torn anywhere. An unfinished line is copied into a buffer that doubles, so that neither
 * many small chunks nor a long line cost more than a few copies, and no slice keeps a whole chunk.
 */
export class LineReader {
  /** The longest line from now on. */
  maxBytes: number;
  #unfinished: Buffer | null = null;
  #length = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** Takes a chunk and gives the lines that it ended, one after the other; a problem is the last thing. */
  *take(chunk: Buffer): Generator<LineEvent> {
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      const event = this.#lengthWith(end - start) > this.maxBytes + 1 ? TOO_LARGE : this.#finish(chunk, start, end);
      yield event;
      if ('problem' in event) return;
      start = end + 1;
    }
    // One byte more than a line may have: it could be the CR before its end.
    if (this.#lengthWith(chunk.length - start) > this.maxBytes + 1) yield TOO_LARGE;
    else if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  #lengthWith(more: number): number {
    return this.#length + more;
  }

  /** The line that ends at `end`. */
  #finish(chunk: Buffer, start: number, end: number): LineEvent {
    const line = this.#whole(chunk.subarray(start, end));
    if (line.length > this.maxBytes) return TOO_LARGE;
    return isUtf8(line) ? { text: line.toString('utf8') } : { problem: 'notJson' };
  }

  #whole(last: Buffer): Buffer {
    let line = last;
    if (this.#length > 0) {
      this.#keep(last);
      line = this.#unfinished!.subarray(0, this.#length);
      this.#unfinished = null;
      this.#length = 0;
    }
    return line.at(-1) === CR ? line.subarray(0, -1) : line;
  }

  #keep(part: Buffer): void {
    const length = this.#length + part.length;
    if (this.#unfinished === null || this.#unfinished.length < length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, 2 * this.#length, length));
      this.#unfinished?.copy(larger, 0, 0, this.#length);
      this.#unfinished = larger;
    }
    part.copy(this.#unfinished, this.#length);
    this.#length = length;
  }
}
