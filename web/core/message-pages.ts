import type { Message, Notice } from '../../client/core/shapes.ts';

/** The number of messages of one page. */
export const PAGE_MESSAGES = 100;
const MAX_PAGES_OF_CONVERSATION = 30;
const MAX_STORED_PAGES = 200;
/**
 * The maximum number of notices of one page, as in an answer of the server. If there are more, the oldest are dropped.
 */
const MAX_NOTICES_OF_PAGE = 200;
const NO_NOTICES: readonly Notice[] = [];

interface MessagePage {
  readonly conversation: number;
  readonly bySeq: Map<number, Message>;
  readonly noticesByRev: Map<number, Notice>;
  /**
   * The notices by the seq of the message before them, since each row looks up its notices on every draw. Null: not
   * grouped yet.
   */
  noticesBySeq: ReadonlyMap<number, readonly Notice[]> | null;
}

/** A range of seqs, both ends included. */
export interface SeqRange {
  readonly fromSeq: number;
  readonly toSeq: number;
}

/**
 * Messages by conversation and seq, in pages of 100, with the notices that follow them. It keeps the pages that were
 * used last: at most 30 of a conversation, and 200 in total.
 */
export class MessagePages {
  /** The stored pages, ordered by their last use: the page that was used last is at the end. */
  readonly #pages = new Map<string, MessagePage>();

  get(conversation: number, seq: number): Message | undefined {
    return this.#pages.get(keyOf(conversation, seq))?.bySeq.get(seq);
  }

  /**
   * Whether a row can show its message. The row also needs the previous message, whose sender decides on the row's
   * heading and so on its height.
   */
  canShow(conversation: number, seq: number, firstSeq: number): boolean {
    const isKnown = (each: number): boolean => this.get(conversation, each) !== undefined;
    return isKnown(seq) && (seq === firstSeq || isKnown(seq - 1));
  }

  /** Stores messages. Of two states of a message it keeps the one with the greater rev. */
  put(conversation: number, messages: readonly Message[]): void {
    for (const message of messages) {
      const page = this.#touchPage(conversation, message.seq) ?? this.#addPage(conversation, message.seq);
      const known = page.bySeq.get(message.seq);
      if (known === undefined || known.rev <= message.rev) page.bySeq.set(message.seq, message);
    }
  }

  /**
   * Stores a notice with the page of the message before it; notices before the first message with the first page. Of
   * two notices with the same rev it keeps the one that was stored later.
   */
  putNotice(conversation: number, rev: number, notice: Notice): void {
    if (notice.after_seq === undefined) return;
    const seq = noticePageSeq(notice.after_seq);
    const page = this.#touchPage(conversation, seq) ?? this.#addPage(conversation, seq);
    page.noticesByRev.set(rev, notice);
    if (page.noticesByRev.size > MAX_NOTICES_OF_PAGE) page.noticesByRev.delete(Math.min(...page.noticesByRev.keys()));
    page.noticesBySeq = null;
  }

  /** The notices between the message `seq` and the next one, in their order; `seq` 0: before the first message. */
  noticesAfter(conversation: number, seq: number): readonly Notice[] {
    const page = this.#pages.get(keyOf(conversation, noticePageSeq(seq)));
    if (page === undefined) return NO_NOTICES;
    page.noticesBySeq ??= groupBySeq(page.noticesByRev);
    return page.noticesBySeq.get(seq) ?? NO_NOTICES;
  }

  /** Whether the page that a notice belongs to is stored. */
  hasPageOfNotice(conversation: number, { after_seq: seq = 0 }: Notice): boolean {
    return this.hasPageOf(conversation, noticePageSeq(seq));
  }

  /** The stored messages of a conversation, in the order of their seqs. */
  allOf(conversation: number): Message[] {
    const pages = [...this.#pages.values()].filter((each) => each.conversation === conversation);
    return pages.flatMap(({ bySeq }) => [...bySeq.values()]).sort((a, b) => a.seq - b.seq);
  }

  /** Whether the page that a seq belongs to is stored. */
  hasPageOf(conversation: number, seq: number): boolean {
    return this.#pages.has(keyOf(conversation, seq));
  }

  /** The first gap of missing messages within a range, at most to the end of its page; null: none is missing. */
  firstMissing(conversation: number, { fromSeq: from, toSeq: to }: SeqRange): SeqRange | null {
    let gapBeginSeq = 0;
    for (let seq = from; seq <= to; seq += 1) {
      const isPresent = this.get(conversation, seq) !== undefined;
      if (gapBeginSeq === 0 && !isPresent) gapBeginSeq = seq;
      if (gapBeginSeq !== 0 && (isPresent || pageOf(seq) !== pageOf(gapBeginSeq)))
        return { fromSeq: gapBeginSeq, toSeq: seq - 1 };
    }
    return gapBeginSeq === 0 ? null : { fromSeq: gapBeginSeq, toSeq: to };
  }

  /** Marks the pages of a range as used, so that others are dropped first. */
  touch(conversation: number, { fromSeq: from, toSeq: to }: SeqRange): void {
    for (let seq = from; pageOf(seq) <= pageOf(to); seq += PAGE_MESSAGES) this.#touchPage(conversation, seq);
  }

  /** Forgets the messages and notices of a conversation whose rev is greater than `rev`. */
  forgetAfterRev(conversation: number, rev: number): void {
    for (const page of this.#pages.values()) {
      if (page.conversation !== conversation) continue;
      for (const [seq, message] of page.bySeq) if (message.rev > rev) page.bySeq.delete(seq);
      for (const noticeRev of page.noticesByRev.keys()) if (noticeRev > rev) page.noticesByRev.delete(noticeRev);
      page.noticesBySeq = null;
    }
  }

  forget(conversation: number): void {
    for (const [key, page] of this.#pages) if (page.conversation === conversation) this.#pages.delete(key);
  }

  #touchPage(conversation: number, seq: number): MessagePage | undefined {
    const key = keyOf(conversation, seq);
    const page = this.#pages.get(key);
    if (page === undefined) return undefined;
    this.#pages.delete(key);
    this.#pages.set(key, page);
    return page;
  }

  #addPage(conversation: number, seq: number): MessagePage {
    const page: MessagePage = { conversation, bySeq: new Map(), noticesByRev: new Map(), noticesBySeq: null };
    this.#pages.set(keyOf(conversation, seq), page);
    const pagesOfConversation = [...this.#pages].filter(([, each]) => each.conversation === conversation);
    if (pagesOfConversation.length > MAX_PAGES_OF_CONVERSATION) this.#pages.delete(pagesOfConversation[0]![0]);
    if (this.#pages.size > MAX_STORED_PAGES) this.#pages.delete(this.#pages.keys().next().value!);
    return page;
  }
}

function pageOf(seq: number): number {
  return Math.floor((seq - 1) / PAGE_MESSAGES);
}

function keyOf(conversation: number, seq: number): string {
  return `${conversation}:${pageOf(seq)}`;
}

/** The seq of the message whose page has the notices after `seq`. */
const noticePageSeq = (seq: number): number => Math.max(1, seq);

function groupBySeq(byRev: ReadonlyMap<number, Notice>): Map<number, readonly Notice[]> {
  const groups = new Map<number, Notice[]>();
  for (const [, notice] of [...byRev].sort(([a], [b]) => a - b)) {
    const { after_seq: seq } = notice;
    if (seq === undefined) continue;
    const group = groups.get(seq);
    if (group === undefined) groups.set(seq, [notice]);
    else group.push(notice);
  }
  return groups;
}
