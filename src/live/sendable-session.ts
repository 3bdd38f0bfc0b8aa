import type { AccountId } from '../model/ids.ts';
import type { LiveConnection } from './transport/live-connection.ts';
import type { EncodedFrames } from './encoded-frames.ts';

/** The part of a session that feeds and ephemeral events use to send. */
export interface SendableSession {
  readonly connection: LiveConnection;
  readonly accountId: AccountId;
  readonly isOpen: boolean;
  send(text: string): void;
  sendEncoded(frames: EncodedFrames, framesToSkip: number): void;
}
