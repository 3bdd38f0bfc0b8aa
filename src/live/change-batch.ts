import type { AccountId, ConversationId, Rev } from '../model/ids.ts';
import type { Change, ChangePage } from '../storage/messages/changes.ts';
import { changeNotification } from './frames.ts';
import { EncodedFrames } from './encoded-frames.ts';

/** What a change's frames take in memory beside their text, roughly. */
const MEMORY_OVERHEAD_BYTES = 100;
/** Texts, and frames for two kinds of connections. */
const COPIES_PER_TEXT = 3;

/** A change that its sender is told more of than everybody else. */
interface OwnFrame {
  readonly index: number;
  readonly accountId: AccountId;
  readonly text: string;
}

/** The changes of a conversation behind `from` up to `to`, all of them, as frames that were made once. */
export class ChangeBatch {
  readonly afterRev: Rev;
  readonly upToRev: Rev;
  /** Roughly what it takes in memory. */
  readonly memoryBytes: number;
  readonly #revs: readonly Rev[];
  readonly #frames: EncodedFrames;
  readonly #texts: readonly string[];
  readonly #ownFrames: readonly OwnFrame[];

  constructor(conversationId: ConversationId, afterRev: Rev, page: ChangePage) {
    const texts = page.changes.map((change) => changeNotification(conversationId, change));
    const ownFrames = page.changes.flatMap((change, index) => ownFrameOf(conversationId, change, index) ?? []);
    this.afterRev = afterRev;
    this.upToRev = page.rev;
    this.#frames = new EncodedFrames(texts);
    this.memoryBytes = texts.reduce(
      (sum, text) => sum + COPIES_PER_TEXT * text.length + MEMORY_OVERHEAD_BYTES,
      MEMORY_OVERHEAD_BYTES + ownFrames.reduce((sum, { text }) => sum + text.length + MEMORY_OVERHEAD_BYTES, 0),
    );
    this.#revs = page.changes.map((change) => change.rev);
    this.#texts = texts;
    this.#ownFrames = ownFrames;
  }

  get count(): number {
    return this.#revs.length;
  }

  /**
   * The frames as an account gets them: the same for everybody, but for those whose own messages are among them. Theirs are
   * encoded for each of their sessions, and not kept.
   */
  framesFor(accountId: AccountId): EncodedFrames {
    const own = this.#ownFrames.filter((frame) => frame.accountId === accountId);
    if (own.length === 0) return this.#frames;
    const texts = [...this.#texts];
    for (const { index, text } of own) texts[index] = text;
    return new EncodedFrames(texts);
  }

  /** How many of its changes somebody has who has everything up to `rev`. */
  countUpTo(rev: Rev): number {
    if (rev <= this.afterRev) return 0;
    // From the newest: who lacks something in a stretch lacks little.
    let count = this.#revs.length;
    while (count > 0 && this.#revs[count - 1]! > rev) count -= 1;
    return count;
  }
}

/** Null where the sender gets the frame that everybody gets. */
function ownFrameOf(conversationId: ConversationId, change: Change, index: number): OwnFrame | null {
  if (change.type !== 'message' || change.message.clientId === null) return null;
  const accountId = change.message.sender.id;
  return { index, accountId, text: changeNotification(conversationId, change, accountId) };
}
