import type { ConversationId, Rev } from '../model/ids.ts';
import type { ChangePage } from '../storage/messages/changes.ts';
import { changeText } from './frames.ts';
import { EncodedFrames } from './encoded-frames.ts';

/** What a change's frames take in memory beside their text, roughly. */
const OVERHEAD_BYTES = 100;
/** Texts, and frames for two kinds of connections. */
const COPIES = 3;

/** The changes of a conversation behind `from` up to `to`, all of them, as frames that were made once. */
export class ChangeBatch {
  readonly from: Rev;
  readonly to: Rev;
  readonly frames: EncodedFrames;
  /** Roughly what it takes in memory. */
  readonly bytes: number;
  readonly #revs: readonly Rev[];

  constructor(conversationId: ConversationId, from: Rev, page: ChangePage) {
    const texts = page.changes.map((change) => changeText(conversationId, change));
    this.from = from;
    this.to = page.rev;
    this.frames = new EncodedFrames(texts);
    this.bytes = texts.reduce((sum, text) => sum + COPIES * text.length + OVERHEAD_BYTES, OVERHEAD_BYTES);
    this.#revs = page.changes.map((change) => change.rev);
  }

  /** How many of its changes somebody has who has everything up to `rev`. */
  countUpTo(rev: Rev): number {
    if (rev <= this.from) return 0;
    // From the newest: who lacks something in a stretch lacks little.
    let count = this.#revs.length;
    while (count > 0 && this.#revs[count - 1]! > rev) count -= 1;
    return count;
  }
}
