import type { Message } from '../../client/core/shapes.ts';

/** Messages of one page. */
export const PAGE_MESSAGES = 100;
const MAX_PAGES_OF_CONVERSATION = 30;
const MAX_PAGES = 200;

interface Page {
  readonly conversation: number;
  readonly bySeq: Map<number, Message>;
}

/** A range of seqs, both ends included. */
export interface SeqRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Messages by conversation and seq, in pages of 100. It keeps the last used pages: 30 of a conversation, and 200 in
 * total.
 */
export class MessagePages {
  /** The page that was used last comes last. */
  readonly #pages = new Map<string, Page>();

  get(conversation: number, seq: number): Message | undefined {
    return this.#pages.get(keyOf(conversation, seq))?.bySeq.get(seq);
  }

  /** Stores messages. Of two states of a message it keeps the one with the greater rev. */
  put(conversation: number, messages: readonly Message[]): void {
    for (const message of messages) {
      const page = this.#use(conversation, message.seq) ?? this.#add(conversation, message.seq);
      const known = page.bySeq.get(message.seq);
      if (known === undefined || known.rev <= message.rev) page.bySeq.set(message.seq, message);
    }
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
  firstMissing(conversation: number, { from, to }: SeqRange): SeqRange | null {
    let begin = 0;
    for (let seq = from; seq <= to; seq += 1) {
      const isPresent = this.get(conversation, seq) !== undefined;
      if (begin === 0 && !isPresent) begin = seq;
      if (begin !== 0 && (isPresent || pageOf(seq) !== pageOf(begin))) return { from: begin, to: seq - 1 };
    }
    return begin === 0 ? null : { from: begin, to };
  }

  /** Marks the pages of a range as used, so that others are dropped first. */
  touch(conversation: number, { from, to }: SeqRange): void {
    for (let seq = from; pageOf(seq) <= pageOf(to); seq += PAGE_MESSAGES) this.#use(conversation, seq);
  }

  /** Forgets the messages of a conversation whose rev is greater than `rev`. */
  forgetBehind(conversation: number, rev: number): void {
    for (const { conversation: of, bySeq } of this.#pages.values()) {
      if (of !== conversation) continue;
      for (const [seq, message] of bySeq) if (message.rev > rev) bySeq.delete(seq);
    }
  }

  forget(conversation: number): void {
    for (const [key, page] of this.#pages) if (page.conversation === conversation) this.#pages.delete(key);
  }

  #use(conversation: number, seq: number): Page | undefined {
    const key = keyOf(conversation, seq);
    const page = this.#pages.get(key);
    if (page === undefined) return undefined;
    this.#pages.delete(key);
    this.#pages.set(key, page);
    return page;
  }

  #add(conversation: number, seq: number): Page {
    const page = { conversation, bySeq: new Map<number, Message>() };
    this.#pages.set(keyOf(conversation, seq), page);
    const own = [...this.#pages].filter(([, each]) => each.conversation === conversation);
    if (own.length > MAX_PAGES_OF_CONVERSATION) this.#pages.delete(own[0]![0]);
    if (this.#pages.size > MAX_PAGES) this.#pages.delete(this.#pages.keys().next().value!);
    return page;
  }
}

function pageOf(seq: number): number {
  return Math.floor((seq - 1) / PAGE_MESSAGES);
}

function keyOf(conversation: number, seq: number): string {
  return `${conversation}:${pageOf(seq)}`;
}
