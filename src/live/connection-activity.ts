import type { LiveConnection } from './transport/live-connection.ts';

/** Tells whether a connection gave a sign of life between two checks. */
export class ConnectionActivity {
  readonly #connection: LiveConnection;
  #bytesReadAtLastCheck = 0;
  /** The `bytesSent` of the connection at the last check. Null: its send queue was not full then. */
  #bytesSentAtLastCheck: number | null = null;

  constructor(connection: LiveConnection) {
    this.#connection = connection;
  }

  /**
   * True in one of these cases:
   * - Bytes arrived since the last check.
   * - A full connection sent bytes: its client is busy reading, and may answer our ping late.
   * - The input is paused and the connection is not full: the server reads no sign of life from such a client.
   */
  wasActive(isInputPaused: boolean): boolean {
    const { bytesRead, bytesSent, isFull } = this.#connection;
    const hasSent = this.#bytesSentAtLastCheck !== null && this.#bytesSentAtLastCheck !== bytesSent;
    const isActive = bytesRead !== this.#bytesReadAtLastCheck || hasSent || (isInputPaused && !isFull);
    this.#bytesReadAtLastCheck = bytesRead;
    this.#bytesSentAtLastCheck = isFull ? bytesSent : null;
    return isActive;
  }
}
