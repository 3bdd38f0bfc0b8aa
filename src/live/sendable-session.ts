import type { AccountId } from '../model/ids.ts';
import type { LiveConnection } from './transport/live-connection.ts';
import type { EncodedFrames } from './encoded-frames.ts';

/** What those need of a session who send it what it did not ask for. */
export interface SendableSession {
  readonly connection: LiveConnection;
  /** Whose it is. */
  readonly accountId: AccountId;
  readonly isOpen: boolean;
  send(text: string): void;
  sendEncoded(frames: EncodedFrames, skip: number): void;
}
