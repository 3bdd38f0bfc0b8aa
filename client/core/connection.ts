export interface ConnectionEnd {
  /** The close code that the server sent; null: the server sent none. */
  readonly code: number | null;
  /** The reason why the connection ended, in words for a person. */
  readonly reason: string;
}

/** The callbacks of the user of a connection. */
export interface ConnectionCallbacks {
  /** Called with each JSON text that the server sends. */
  readonly onText: (text: string) => void;
  /** Called once, also after `close` and `destroy`, and never before the connection was open. */
  readonly onEnd: (end: ConnectionEnd) => void;
}

/** Bounds of one connection. */
export interface ConnectionBounds {
  readonly connectTimeoutMs: number;
  /** The longest text that the client accepts; it closes the connection to a server that sends a longer one. */
  readonly maxInboundTextBytes: number;
  /** Aborts an attempt to connect. */
  readonly connectCancellation?: AbortSignal;
}

/** Connects to the server of a client. Rejects with ConnectionError, whose sentence names the address. */
export type ConnectFunction = (callbacks: ConnectionCallbacks, bounds: ConnectionBounds) => Promise<Connection>;

/** A connection to a server that carries JSON texts in both directions, over any transport. */
export interface Connection {
  /** Does nothing on a connection that has ended. */
  send(text: string): void;
  /** The number of bytes that `send` has accepted and that have not left this process. */
  readonly unsentBytes: number;
  /** Stops reading, so that backpressure slows the server down. Texts that were already read still arrive. */
  pause(): void;
  resume(): void;
  /** Closes the connection in order; after a second without an answer, by force. */
  close(): void;
  /** Closes the connection at once. `onEnd` then gets `reason`, unless the connection had already failed. */
  destroy(reason: string): void;
}
