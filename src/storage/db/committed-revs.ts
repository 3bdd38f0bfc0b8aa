import type { ConversationId, Rev } from '../../model/ids.ts';
import type { Transaction } from './connection.ts';

/** The rev that a transaction has given to a change of a conversation. */
export interface ConversationRev {
  readonly conversationId: ConversationId;
  readonly rev: Rev;
}

const revsByTransaction = new WeakMap<Transaction, ConversationRev[]>();

/** Adds to `revs` what `noteRev` gets for the transaction. They are valid only after its commit. */
export function collectRevs(tx: Transaction, revs: ConversationRev[]): void {
  revsByTransaction.set(tx, revs);
}

/** Notes a rev that the transaction gave out: `PoolOptions.onRevsCommitted` gets it after the commit. */
export function noteRev(tx: Transaction, conversationId: ConversationId, rev: Rev): void {
  revsByTransaction.get(tx)?.push({ conversationId, rev });
}
