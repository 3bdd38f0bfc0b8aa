import type { AccountId } from '../model/ids.ts';
import type { Connection } from './connection.ts';
import type { Prepared } from './prepared.ts';

/** What those need of a session who send it what it did not ask for. */
export interface StreamSession {
  readonly connection: Connection;
  /** Whose it is. */
  readonly accountId: AccountId;
  readonly isOpen: boolean;
  send(text: string): void;
  sendPrepared(prepared: Prepared, behind: number): void;
}
