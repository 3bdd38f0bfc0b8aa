import type { AccountId, ConversationId, Rev } from '../model/ids.ts';
import type { Change, ChangePage } from '../storage/messages/changes.ts';
import { changeNotification } from './frames.ts';
import { EncodedFrames } from './encoded-frames.ts';

/** Approximate memory of a change's frames besides their text, in bytes. */
const FRAME_MEMORY_OVERHEAD_BYTES = 100;
/** How often a change's text is in memory: as the text itself, and in its frames for two transports. */
const COPIES_PER_TEXT = 3;

/** The frame of a change that has more fields for the message's sender than for other accounts. */
interface SenderFrame {
  readonly index: number;
  readonly accountId: AccountId;
  readonly text: string;
}

/** All changes of a conversation after `afterRev` up to `upToRev`, as frames that were encoded once. */
export class ChangeBatch {
  readonly afterRev: Rev;
  readonly upToRev: Rev;
  /** Approximate size in memory. */
  readonly memoryBytes: number;
  readonly #revs: readonly Rev[];
  readonly #frames: EncodedFrames;
  readonly #texts: readonly string[];
  readonly #senderFrames: readonly SenderFrame[];

  constructor(conversationId: ConversationId, afterRev: Rev, page: ChangePage) {
    const texts = page.changes.map((change) => changeNotification(conversationId, change));
    const senderFrames = page.changes.flatMap((change, index) => senderFrameOf(conversationId, change, index) ?? []);
    this.afterRev = afterRev;
    this.upToRev = page.rev;
    this.#frames = new EncodedFrames(texts);
    this.memoryBytes = texts.reduce(
      (sum, text) => sum + COPIES_PER_TEXT * text.length + FRAME_MEMORY_OVERHEAD_BYTES,
      FRAME_MEMORY_OVERHEAD_BYTES +
        senderFrames.reduce((sum, { text }) => sum + text.length + FRAME_MEMORY_OVERHEAD_BYTES, 0),
    );
    this.#revs = page.changes.map((change) => change.rev);
    this.#texts = texts;
    this.#senderFrames = senderFrames;
  }

  get changeCount(): number {
    return this.#revs.length;
  }

  /**
   * The frames for an account. All accounts share them, except the senders of messages in the batch. A sender's frames
   * are encoded again for each of its sessions, and not cached.
   */
  framesFor(accountId: AccountId): EncodedFrames {
    const senderFrames = this.#senderFrames.filter((frame) => frame.accountId === accountId);
    if (senderFrames.length === 0) return this.#frames;
    const texts = [...this.#texts];
    for (const { index, text } of senderFrames) texts[index] = text;
    return new EncodedFrames(texts);
  }

  /** The number of the batch's changes that a follower with everything up to `rev` already has. */
  countUpTo(rev: Rev): number {
    if (rev <= this.afterRev) return 0;
    // The search starts at the newest change: a follower usually lacks only a few changes of a batch.
    let count = this.#revs.length;
    while (count > 0 && this.#revs[count - 1]! > rev) count -= 1;
    return count;
  }
}

/** A change's frame for the message's sender; null if the sender gets the same frame as everybody. */
function senderFrameOf(conversationId: ConversationId, change: Change, index: number): SenderFrame | null {
  if (change.type !== 'message' || change.message.clientId === null) return null;
  const accountId = change.message.sender.id;
  return { index, accountId, text: changeNotification(conversationId, change, accountId) };
}
