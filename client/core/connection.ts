/** How a connection ended. */
export interface ConnectionEnd {
  /** The server's close code, if it gave one. */
  readonly code: number | null;
  /** For a person. */
  readonly reason: string;
}

/** What its user hears of a connection. */
export interface ConnectionCallbacks {
  /** One JSON text. */
  readonly onText: (text: string) => void;
  /** Once, also after `close` and `destroy`, and never before the connection was there. */
  readonly onEnd: (end: ConnectionEnd) => void;
}

/** Bounds of one connection. */
export interface ConnectionBounds {
  readonly connectTimeoutMs: number;
  /** The longest text that is taken; a server that sends more is hung up on. */
  readonly maxInboundTextBytes: number;
  /** Ends an attempt to connect. */
  readonly connectCancellation?: AbortSignal;
}

/** Connects to the server of a client. Rejects with ConnectionError, whose sentence names the address. */
export type ConnectFunction = (callbacks: ConnectionCallbacks, bounds: ConnectionBounds) => Promise<Connection>;

/** A way to a server that carries JSON texts in both directions, whatever they travel in. */
export interface Connection {
  /** Does nothing on a connection that has ended. */
  send(text: string): void;
  /** Bytes that were sent and have not left this process. */
  readonly unsentBytes: number;
  /** Stops reading, so that a server which sends more than is taken in feels it; what was read already still comes. */
  pause(): void;
  resume(): void;
  /** Ends it in order; after a second without an answer by force. */
  close(): void;
  /** Ends it at once. `reason` is what `ended` says. */
  destroy(reason: string): void;
}
