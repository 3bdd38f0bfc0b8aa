import type { CloseReason } from '../close-codes.ts';
import type { SourceKey } from '../../model/source-key.ts';
import type { KlatchCookie } from '../../operations/core/session-cookie.ts';
import type { LiveTransport } from '../../model/transport.ts';
import type { EncodedFrames } from '../encoded-frames.ts';

/** Texts to and from one client, over any transport. No method throws; texts to a closed connection are dropped. */
export interface LiveConnection {
  readonly kind: LiveTransport;
  /** The client's network; behind trusted proxies, the network that they report. */
  readonly source: SourceKey;
  /** The Klatch cookies of the handshake, if a page of the server's own origin sent it; otherwise none. */
  readonly handshakeCookies: readonly KlatchCookie[];
  /** Bytes that were given to the connection but not yet taken by the operating system. */
  readonly bytesQueued: number;
  /** Bytes that have arrived: when they grow, the client is alive. */
  readonly bytesRead: number;
  /** Sent bytes that the operating system has taken. */
  readonly bytesSent: number;
  /** True: callers should wait for `drained` before they send more. */
  readonly isFull: boolean;
  /**
   * Sets the most bytes of an incoming frame. Before the first call, the bound for clients without a sign-in applies.
   */
  setMaxFrameBytes(maxBytes: number): void;
  send(text: string): void;
  /** Sends frames that are encoded once for many clients, without the first `framesToSkip`. */
  sendEncoded(frames: EncodedFrames, framesToSkip: number): void;
  ping(): void;
  pause(): void;
  resume(): void;
  /** Resolves when the queued bytes were sent, or the connection is closed. */
  drained(): Promise<void>;
  /** Sends the queued bytes and the reason, then closes the connection. */
  close(reason: CloseReason): void;
  /** Closes the connection at once, without sending queued bytes. */
  destroy(): void;
}

/** Receives the events of a connection. */
export interface ConnectionListener {
  onText(text: string): void;
  /** The client sent a ping, which has been answered. */
  countPingAsRequest(): void;
  /** The input cannot be parsed; the connection is being closed for that reason. */
  onProtocolError(reason: CloseReason): void;
  /** The client has closed its sending side and may still read. */
  onEnd(): void;
  /** The connection has closed. `code` is the close code that was sent; 0: the connection broke before one was sent. */
  onClose(code: number): void;
}
