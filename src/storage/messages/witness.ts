import type { ConversationId, LogEpoch } from '../../model/ids.ts';
import type { ConversationRev } from '../db/committed-revs.ts';

/** The newest message and the newest change of a conversation that this node knows to be committed. */
export interface WitnessedHead {
  readonly conversationId: ConversationId;
  /** The seq of the newest message; 0: none is known. */
  readonly seq: number;
  /** When that message was sent, in ms of Unix time; 0: not known. */
  readonly sentAtMs: number;
  /** The rev of the newest change; 0: none is known. */
  readonly rev: number;
  /** The seq of the message that the newest change changed, or `NOTICE_CHANGED_SEQ`, or `UNKNOWN_CHANGED_SEQ`. */
  readonly changedSeq: number;
  /** The time of the newest change, in ms of Unix time; 0: not known. */
  readonly changedAtMs: number;
}

type WitnessedChange = Pick<WitnessedHead, 'rev' | 'changedSeq' | 'changedAtMs'>;

/** `changedSeq` of a change that is a notice. */
export const NOTICE_CHANGED_SEQ = 0;
/** `changedSeq` of a change of which only the rev is known. */
export const UNKNOWN_CHANGED_SEQ = -1;

/**
 * A failover can lose only the end of PostgreSQL's write-ahead log: if any change is lost, the newest one is lost. So
 * it suffices to remember the conversations that changed last.
 */
export const MAX_WITNESSED_CONVERSATIONS = 1_000;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * Remembers the newest committed change of the conversations that changed last, as far as this node knows it. A node
 * knows a change if it acknowledged, read or delivered it, or got a notification about it. A database that lacks one of
 * these changes has lost history (`findLostHeads`).
 */
export class Witness {
  /** The newest known head of each conversation. The conversation of which this node heard last comes last. */
  readonly #heads = new Map<ConversationId, Mutable<WitnessedHead>>();
  /**
   * Conversations of whose newest change this node lacks the rev, the message or the time. The one that changed last
   * comes last.
   */
  readonly #incomplete = new Set<ConversationId>();
  /** A counter that rises with each change of the witness. */
  version = 0;
  /** The log epoch when this node last read it from the database. */
  logEpoch = 0 as LogEpoch;
  /**
   * For metrics, since the start of this process: in how many conversations it found that the database had lost
   * changes, and when it last found that (`lastAtMs`, in ms of Unix time; 0: never).
   */
  readonly losses = { conversations: 0, lastAtMs: 0 };

  get heads(): readonly WitnessedHead[] {
    return [...this.#heads.values()];
  }

  /** Records that a message is committed; `sentAtMs` 0: its time is not known. */
  recordMessage(conversationId: ConversationId, seq: number, sentAtMs = 0): void {
    const head = this.#touch(conversationId);
    setMessageIfNewer(head, seq, sentAtMs);
    if (head.sentAtMs === 0) this.#markIncomplete(conversationId);
  }

  /** Records that a change is committed. */
  recordChange(conversationId: ConversationId, change: WitnessedChange): void {
    const head = this.#touch(conversationId);
    setChangeIfNewer(head, change);
    if (head.changedSeq === UNKNOWN_CHANGED_SEQ) this.#markIncomplete(conversationId);
  }

  recordRevs(revs: readonly ConversationRev[]): void {
    for (const { conversationId, rev } of revs) {
      this.recordChange(conversationId, { rev, changedSeq: UNKNOWN_CHANGED_SEQ, changedAtMs: 0 });
    }
  }

  /** Records that a conversation changed, after a notification that does not contain the rev of the change. */
  recordUnknownChange(conversationId: ConversationId): void {
    this.#touch(conversationId);
    this.#markIncomplete(conversationId);
  }

  /**
   * Returns at most `limit` incomplete conversations, those that changed last; the caller reads them from the
   * database. The others no longer count as incomplete.
   */
  takeNewestIncomplete(limit: number): ConversationId[] {
    const taken = [...this.#incomplete].slice(-limit);
    this.#incomplete.clear();
    return taken;
  }

  get hasIncomplete(): boolean {
    return this.#incomplete.size > 0;
  }

  /** Marks conversations as incomplete again, because their read failed. */
  putBackIncomplete(conversations: readonly ConversationId[]): void {
    for (const id of conversations) if (this.#heads.has(id)) this.#incomplete.add(id);
  }

  /**
   * Adds heads from the database or from the file of a former process. For each conversation the newer message and the
   * newer change are kept.
   */
  load(heads: readonly WitnessedHead[]): void {
    for (const loaded of heads) {
      const head = this.#touch(loaded.conversationId);
      setMessageIfNewer(head, loaded.seq, loaded.sentAtMs);
      setChangeIfNewer(head, loaded);
    }
  }

  /** Forgets conversations that lost changes: the database gives the lost numbers to other messages and changes. */
  forget(conversations: readonly ConversationId[]): void {
    for (const id of conversations) {
      this.#heads.delete(id);
      this.#incomplete.delete(id);
    }
    this.version += 1;
  }

  #markIncomplete(conversationId: ConversationId): void {
    // A set keeps the place of an entry that is added again.
    this.#incomplete.delete(conversationId);
    this.#incomplete.add(conversationId);
  }

  #touch(conversationId: ConversationId): Mutable<WitnessedHead> {
    this.version += 1;
    const known = this.#heads.get(conversationId);
    const head = known ?? {
      conversationId,
      seq: 0,
      sentAtMs: 0,
      rev: 0,
      changedSeq: UNKNOWN_CHANGED_SEQ,
      changedAtMs: 0,
    };
    if (known !== undefined) this.#heads.delete(conversationId);
    this.#heads.set(conversationId, head);
    if (this.#heads.size > MAX_WITNESSED_CONVERSATIONS) {
      const [oldest] = this.#heads.keys();
      this.#heads.delete(oldest!);
      this.#incomplete.delete(oldest!);
    }
    return head;
  }
}

function setMessageIfNewer(head: Mutable<WitnessedHead>, seq: number, sentAtMs: number): void {
  if (seq < head.seq || (seq === head.seq && sentAtMs === 0)) return;
  head.seq = seq;
  head.sentAtMs = sentAtMs;
}

function setChangeIfNewer(head: Mutable<WitnessedHead>, { rev, changedSeq, changedAtMs }: WitnessedChange): void {
  if (rev < head.rev || (rev === head.rev && changedSeq === UNKNOWN_CHANGED_SEQ)) return;
  head.rev = rev;
  head.changedSeq = changedSeq;
  head.changedAtMs = changedAtMs;
}
