import type { ConversationId, Rev } from '../../model/ids.ts';
import type { Transaction } from './connection.ts';

/** The rev that a transaction has given to a change of a conversation. */
export interface ConversationRev {
  readonly conversationId: ConversationId;
  readonly rev: Rev;
}

const revsByTransaction = new WeakMap<Transaction, ConversationRev[]>();

/** Makes `noteRev` add the revs of this transaction to `revs`. They are valid only after its commit. */
export function collectRevs(tx: Transaction, revs: ConversationRev[]): void {
  revsByTransaction.set(tx, revs);
}

/** Records a rev that the transaction assigned: `PoolOptions.onRevsCommitted` gets it after the commit. */
export function noteRev(tx: Transaction, conversationId: ConversationId, rev: Rev): void {
  revsByTransaction.get(tx)?.push({ conversationId, rev });
}
