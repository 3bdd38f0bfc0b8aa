import type { ConversationId, Rev } from '../../model/ids.ts';
import type { Transaction } from './connection.ts';

/** The rev that a transaction has given to a change of a conversation. */
export interface ConversationRev {
  readonly conversationId: ConversationId;
  readonly rev: Rev;
}

const revsByTransaction = new WeakMap<Transaction, ConversationRev[]>();

/** Collects in `revs` what `noteRev` is told of a transaction; they count once it is committed. */
export function collectRevs(tx: Transaction, revs: ConversationRev[]): void {
  revsByTransaction.set(tx, revs);
}

/** Says that the transaction has given out a rev, for those who are told once it is committed (`PoolOptions.onRevsCommitted`). */
export function noteRev(tx: Transaction, conversationId: ConversationId, rev: Rev): void {
  revsByTransaction.get(tx)?.push({ conversationId, rev });
}
