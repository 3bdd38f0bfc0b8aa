import type { CloseReason } from '../close-codes.ts';
import type { SourceKey } from '../../model/source-key.ts';
import type { KlatchCookie } from '../../operations/core/session-cookie.ts';
import type { LiveTransport } from '../../model/transport.ts';
import type { EncodedFrames } from '../encoded-frames.ts';

/** Texts to and from one client, whatever carries them. Nothing here throws; what cannot be sent any more is dropped. */
export interface LiveConnection {
  readonly kind: LiveTransport;
  /** The network that the client comes from, behind trusted proxies the one that they name. */
  readonly source: SourceKey;
  /** Cookies of Klatch servers that a page of the own origin brought along; else none. */
  readonly handshakeCookies: readonly KlatchCookie[];
  /** Bytes that were given to the connection and not yet taken by the operating system. */
  readonly bytesQueued: number;
  /** Bytes that have arrived: when they grow, the client lives. */
  readonly bytesRead: number;
  /** Bytes that the operating system has taken of what was sent. */
  readonly bytesFlushed: number;
  /** Whether more should wait with being sent until `drained` resolves. */
  readonly isFull: boolean;
  /** Takes frames of so many bytes from now on; before that a connection takes those of one that has not signed in. */
  setMaxFrameBytes(maxBytes: number): void;
  send(text: string): void;
  /** Sends frames that are the same for many; `skip` of them are passed over. */
  sendEncoded(frames: EncodedFrames, skip: number): void;
  /** Asks the client for a sign of life. */
  ping(): void;
  pause(): void;
  resume(): void;
  /** Resolves when what waited has gone out, or can go nowhere any more. */
  drained(): Promise<void>;
  /** Sends what waits, says why, and ends. */
  close(reason: CloseReason): void;
  /** Ends at once. */
  destroy(): void;
}

/** What a connection tells of its client. */
export interface ConnectionListener {
  onText(text: string): void;
  /** The client asks for a sign of life; it has its answer. */
  countPingAsRequest(): void;
  /** What arrived cannot be read; the connection is being closed for that reason. */
  onProtocolError(reason: CloseReason): void;
  /** The client sends nothing more and may still read. */
  onEnd(): void;
  /** It is over. `code` is what was said when it was closed; 0: nothing, it broke. */
  onClose(code: number): void;
}
