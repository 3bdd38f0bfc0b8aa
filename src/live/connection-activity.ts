import type { LiveConnection } from './transport/live-connection.ts';

/** Whether a connection gave a sign of life between two looks. */
export class ConnectionActivity {
  readonly #connection: LiveConnection;
  #bytesRead = 0;
  /** Null: there was room for more when it was last looked at. */
  #bytesFlushed: number | null = null;

  constructor(connection: LiveConnection) {
    this.#connection = connection;
  }

  /**
   * Whether something came since the last look, or something went out that had no room before: who is busy reading may
   * come to our question late. One that is not read from cannot give a sign.
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
