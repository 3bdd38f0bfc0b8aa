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
   * True when bytes arrived since the last check, or a full connection sent some. A client that is busy reading may get
   * to our ping late. A connection whose input is paused cannot give a sign.
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
