import type { LiveConnection } from './transport/live-connection.ts';

/** Whether a connection gave a sign of life between two checks. */
export class ConnectionActivity {
  readonly #connection: LiveConnection;
  #bytesRead = 0;
  /** Null: the connection was not full at the last check. */
  #bytesFlushed: number | null = null;

  constructor(connection: LiveConnection) {
    this.#connection = connection;
  }

  /**
   * True in one of these cases:
   * - Bytes arrived since the last check.
   * - A full connection sent bytes: its client is busy reading, and may get to our ping late.
   * - The input is paused and the connection is not full: such a client cannot give a sign.
   */
  wasActive(isInputPaused: boolean): boolean {
    const { bytesRead, bytesFlushed, isFull } = this.#connection;
    const hasFlushed = this.#bytesFlushed !== null && this.#bytesFlushed !== bytesFlushed;
    const isActive = bytesRead !== this.#bytesRead || hasFlushed || (isInputPaused && !isFull);
    this.#bytesRead = bytesRead;
    this.#bytesFlushed = isFull ? bytesFlushed : null;
    return isActive;
  }
}
