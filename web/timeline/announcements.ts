import { signal } from '@preact/signals';
import type { Message } from '../../client/core/shapes.ts';

/** The shortest time between two announcements of new messages: a screen reader reads each one to its end. */
const ANNOUNCEMENT_INTERVAL_MS = 2_000;
/** If more messages arrive between two announcements, the older ones are counted without a check of their sender. */
const MAX_CHECKED_MESSAGES = 1_000;

/** Messages of other accounts that arrived since the last announcement. */
interface NewMessages {
  readonly count: number;
  /** The message, if exactly one has arrived and the page has it. */
  readonly onlyMessage: Message | null;
}

interface AnnouncementsOptions {
  /** The seq of the newest message of the conversation when it was opened. */
  readonly lastSeq: number;
  /** The message at a seq; undefined: the page does not have this message. */
  readonly messageAt: (seq: number) => Message | undefined;
  readonly isOwn: (message: Message) => boolean;
  readonly wordsOf: (messages: NewMessages) => string;
  readonly intervalMs?: number;
}

/** The text that screen readers announce about a conversation while it is open. */
export class Announcements {
  /** The text of the page's live region, which screen readers announce when it changes. */
  readonly text = signal('');
  readonly #options: AnnouncementsOptions;
  #lastSeq: number;
  /** The seq up to which messages were announced. */
  #announcedSeq: number;
  /** The earliest time of the next announcement of new messages, as `performance.now` counts. */
  #nextAnnouncementAt = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isEvenAnnouncement = false;

  constructor(options: AnnouncementsOptions) {
    this.#options = options;
    this.#lastSeq = options.lastSeq;
    this.#announcedSeq = options.lastSeq;
  }

  /** `lastSeq`: the seq of the newest message now. */
  update(lastSeq: number): void {
    // A server that lost messages assigns their seqs to new messages.
    if (lastSeq < this.#lastSeq) this.#announcedSeq = Math.min(this.#announcedSeq, lastSeq);
    const hasNew = lastSeq > this.#lastSeq;
    this.#lastSeq = lastSeq;
    if (hasNew)
      this.#timer ??= setTimeout(() => this.#announceNew(), Math.max(0, this.#nextAnnouncementAt - performance.now()));
  }

  /** Announces the result of something that the person did, at once. */
  say(text: string): void {
    // A live region announces only a changed text. A no-break space at the end changes it inaudibly.
    this.#isEvenAnnouncement = !this.#isEvenAnnouncement;
    this.text.value = this.#isEvenAnnouncement ? text : `${text}\u00A0`;
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #announceNew(): void {
    this.#timer = null;
    const { isOwn, messageAt, wordsOf } = this.#options;
    const firstChecked = Math.max(this.#announcedSeq + 1, this.#lastSeq - MAX_CHECKED_MESSAGES + 1);
    let count = firstChecked - this.#announcedSeq - 1;
    let latest: Message | undefined;
    for (let seq = firstChecked; seq <= this.#lastSeq; seq += 1) {
      const message = messageAt(seq);
      if (message !== undefined && (isOwn(message) || message.deleted === true)) continue;
      count += 1;
      latest = message;
    }
    this.#announcedSeq = this.#lastSeq;
    if (count === 0) return;
    this.say(wordsOf({ count, onlyMessage: count === 1 ? (latest ?? null) : null }));
    this.#nextAnnouncementAt = performance.now() + (this.#options.intervalMs ?? ANNOUNCEMENT_INTERVAL_MS);
  }
}
