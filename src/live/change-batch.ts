import type { ConversationId, Rev } from '../model/ids.ts';
import type { ChangePage } from '../storage/messages/changes.ts';
import { changeNotification } from './frames.ts';
import { EncodedFrames } from './encoded-frames.ts';

/** What a change's frames take in memory beside their text, roughly. */
const MEMORY_OVERHEAD_BYTES = 100;
/** Texts, and frames for two kinds of connections. */
const COPIES_PER_TEXT = 3;

/** The changes of a conversation behind `from` up to `to`, all of them, as frames that were made once. */
export class ChangeBatch {
  readonly afterRev: Rev;
  readonly upToRev: Rev;
  readonly frames: EncodedFrames;
  /** Roughly what it takes in memory. */
  readonly memoryBytes: number;
  readonly #revs: readonly Rev[];

  constructor(conversationId: ConversationId, afterRev: Rev, page: ChangePage) {
    const texts = page.changes.map((change) => changeNotification(conversationId, change));
    this.afterRev = afterRev;
    this.upToRev = page.rev;
    this.frames = new EncodedFrames(texts);
    this.memoryBytes = texts.reduce(
      (sum, text) => sum + COPIES_PER_TEXT * text.length + MEMORY_OVERHEAD_BYTES,
      MEMORY_OVERHEAD_BYTES,
    );
    this.#revs = page.changes.map((change) => change.rev);
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
