import { isUtf8 } from 'node:buffer';

const LF = 0x0a;
const CR = 0x0d;
const INITIAL_BUFFER_BYTES = 512;
const TOO_LARGE = { problem: 'too_large' } as const;

/** The result of a line: its text, or why it is refused. */
type LineEvent = { readonly text: string } | { readonly problem: 'too_large' | 'invalid_json' };

/**
 * Splits chunks with arbitrary borders into lines. It copies an unfinished line into a buffer that doubles. So neither
 * many small chunks nor a long line cost more than a few copies, and no part of a line keeps a whole chunk in memory.
 */
export class LineReader {
  /** The most bytes of a line. A new value applies to every line that has not ended yet. */
  maxLineBytes: number;
  #partialLine: Buffer | null = null;
  #partialBytes = 0;

  constructor(maxLineBytes: number) {
    this.maxLineBytes = maxLineBytes;
  }

  /** Takes a chunk, and yields the lines that end in it, one after the other. Nothing follows a line with a problem. */
  *push(chunk: Buffer): Generator<LineEvent> {
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      const event =
        this.#totalLength(end - start) > this.maxLineBytes + 1 ? TOO_LARGE : this.#readLine(chunk, start, end);
      yield event;
      if ('problem' in event) return;
      start = end + 1;
    }
    // Allows one byte more than a line may have: that byte could be the CR before the line's LF.
    if (this.#totalLength(chunk.length - start) > this.maxLineBytes + 1) yield TOO_LARGE;
    else if (start < chunk.length) this.#append(chunk.subarray(start));
  }

  #totalLength(addedBytes: number): number {
    return this.#partialBytes + addedBytes;
  }

  /** The result of the line whose last part is in `chunk` from `start` to `end`. */
  #readLine(chunk: Buffer, start: number, end: number): LineEvent {
    const line = this.#joinLine(chunk.subarray(start, end));
    if (line.length > this.maxLineBytes) return TOO_LARGE;
    return isUtf8(line) ? { text: line.toString('utf8') } : { problem: 'invalid_json' };
  }

  #joinLine(lastPart: Buffer): Buffer {
    let line = lastPart;
    if (this.#partialBytes > 0) {
      this.#append(lastPart);
      line = this.#partialLine!.subarray(0, this.#partialBytes);
      this.#partialLine = null;
      this.#partialBytes = 0;
    }
    return line.at(-1) === CR ? line.subarray(0, -1) : line;
  }

  #append(part: Buffer): void {
    const length = this.#partialBytes + part.length;
    if (this.#partialLine === null || this.#partialLine.length < length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(INITIAL_BUFFER_BYTES, 2 * this.#partialBytes, length));
      this.#partialLine?.copy(larger, 0, 0, this.#partialBytes);
      this.#partialLine = larger;
    }
    part.copy(this.#partialLine, this.#partialBytes);
    this.#partialBytes = length;
  }
}
