import type { Socket } from 'node:net';

const STATUS_PREFIX_LENGTH = 'HTTP/1.1 100'.length;
const STATUS_CODE_OFFSET = 'HTTP/1.1 '.length;
const DIGIT_ONE = '1'.charCodeAt(0);
const MAX_SINGLE_CONTINUE_BYTES = 16 * 1024;
const MAX_CONTINUE_RESPONSES = 16;

/**
 * Removes `100 Continue` answers from the input of a socket.
 *
 * A client must accept `100 Continue` even if it did not ask for it (RFC 9110, 15.2), and some servers send it for
 * every POST. undici skips other 1xx answers, but treats this one as an error. The receiver has accepted the message by
 * then, so each retry would post it again. undici gets all input through `socket.read()`, so this class replaces that
 * method. After 16 such answers, or 16 KiB of one answer, it passes the bytes on, and undici refuses them.
 */
export class ContinueFilter {
  readonly #read: () => Buffer | null;
  #buffered: Buffer | null = null;
  #skippedContinues = 0;
  #isAwaitingResponse = false;

  /** Replaces the method `read` of this socket. */
  constructor(socket: Socket) {
    const read = socket.read.bind(socket);
    this.#read = read;
    socket.read = (size?: number): unknown => (this.#isAwaitingResponse ? this.#readFiltered() : read(size));
  }

  /** Must be called before a request is written: the next bytes that are read are the beginning of its answer. */
  expectResponse(): void {
    this.#isAwaitingResponse = true;
    this.#buffered = null;
    this.#skippedContinues = 0;
  }

  #readFiltered(): Buffer | null {
    for (let chunk = this.#read(); chunk !== null; chunk = this.#read()) {
      const data = this.#skipContinues(this.#buffered === null ? chunk : Buffer.concat([this.#buffered, chunk]));
      const isIncomplete =
        startsLikeContinue(data) &&
        data.length < MAX_SINGLE_CONTINUE_BYTES &&
        this.#skippedContinues < MAX_CONTINUE_RESPONSES;
      this.#buffered = isIncomplete ? data : null;
      if (isIncomplete) continue;
      this.#isAwaitingResponse = false;
      return data;
    }
    return null;
  }

  #skipContinues(data: Buffer): Buffer {
    let remaining = data;
    while (
      remaining.length > STATUS_PREFIX_LENGTH &&
      startsLikeContinue(remaining) &&
      this.#skippedContinues < MAX_CONTINUE_RESPONSES
    ) {
      const end = remaining.indexOf('\r\n\r\n');
      if (end < 0) break;
      remaining = remaining.subarray(end + 4);
      this.#skippedContinues += 1;
    }
    return remaining;
  }
}

/** True if the data is the beginning of a `100 Continue` answer, or too short to decide. */
function startsLikeContinue(data: Buffer): boolean {
  // The first digit of the status suffices for nearly every answer: it is not 1 as in 100.
  if (data.length > STATUS_CODE_OFFSET && data[STATUS_CODE_OFFSET] !== DIGIT_ONE) return false;
  const statusPrefix = data.toString('latin1', 0, STATUS_PREFIX_LENGTH);
  return 'HTTP/1.1 100'.startsWith(statusPrefix) || 'HTTP/1.0 100'.startsWith(statusPrefix);
}
