import { signal } from '@preact/signals';
import { backoffMs, DEFAULT_BACKOFF } from '../../client/core/backoff.ts';
import { isTransient } from '../../client/core/chat-error.ts';
import { waitOrUntilAborted } from '../../client/core/wait.ts';
import type { Message, Notice } from '../../client/core/shapes.ts';
import { PAGE_MESSAGES, type MessagePages, type SeqRange } from './message-pages.ts';

/**
 * The pause between two requests. While a person drags the scroll bar, messages that are out of view again after the
 * pause are not fetched.
 */
const SCROLL_REST_MS = 40;

/** If the timeline has more notices than this, it drops those that were fetched first. */
const MAX_NOTICES = 500;
const NO_NOTICES: readonly Notice[] = [];

/** Messages as the server answers them, in the order of their seqs. */
export interface FetchedMessages {
  readonly messages: readonly Message[];
  readonly first_seq?: number | undefined;
  readonly notices?: readonly Notice[] | undefined;
}

interface TimelineOptions {
  readonly conversation: number;
  readonly pages: MessagePages;
  readonly fetchHistory: (after: number, limit: number) => Promise<FetchedMessages>;
  readonly onFirstSeq: (seq: number) => void;
  readonly onMessages: (messages: readonly Message[]) => void;
}

/** Fetches the messages of one conversation that are in view. */
export class Timeline {
  /** Why messages cannot be fetched, or null. */
  readonly problem = signal<string | null>(null);
  /** Raised when messages arrived or changed. */
  readonly version = signal(0);
  readonly #options: TimelineOptions;
  readonly #closed = new AbortController();
  /** The notices by their rev. */
  readonly #notices = new Map<number, Notice>();
  /** The notices by the seq of the message before them, because each row looks its notices up on every draw. */
  #noticesBySeq: Map<number, readonly Notice[]> | null = null;
  #wanted: SeqRange | null = null;
  #isFetching = false;
  #wait = new AbortController();
  /** Raised when the server lost changes: answers to earlier requests are then ignored. */
  #generation = 0;

  constructor(options: TimelineOptions) {
    this.#options = options;
  }

  get conversation(): number {
    return this.#options.conversation;
  }

  /** Sets the range that is in view, and fetches its missing messages. */
  want(range: SeqRange): void {
    this.#wanted = range;
    this.#options.pages.touch(this.conversation, range);
    if (!this.#isFetching) void this.#fetchWanted();
  }

  /** Notices between a message and the next one, in their order; 0: before the first message. */
  noticesAfter(seq: number): readonly Notice[] {
    this.#noticesBySeq ??= groupBySeq(this.#notices);
    return this.#noticesBySeq.get(seq) ?? NO_NOTICES;
  }

  /** Adds a notice. One with the same rev is replaced. */
  addNotice(rev: number, notice: Notice): void {
    this.#notices.set(rev, notice);
    if (this.#notices.size > MAX_NOTICES) this.#notices.delete(this.#notices.keys().next().value!);
    this.#noticesBySeq = null;
    this.changed();
  }

  changed(): void {
    this.version.value += 1;
  }

  /** Fetches the range in view again, after messages were forgotten. */
  refetch(): void {
    this.#generation += 1;
    this.#notices.clear();
    this.#noticesBySeq = null;
    this.changed();
    if (this.#wanted !== null) this.want(this.#wanted);
  }

  /** Makes the next attempt to fetch at once, because the server is reachable again. */
  wake(): void {
    this.#wait.abort();
    this.#wait = new AbortController();
  }

  close(): void {
    this.#closed.abort();
  }

  async #fetchWanted(): Promise<void> {
    this.#isFetching = true;
    const { signal: closed } = this.#closed;
    try {
      for (let failures = 0; !closed.aborted;) {
        const missing = this.#firstMissing();
        if (missing === null) {
          if (this.#wanted !== null) this.problem.value = null;
          return;
        }
        const fetched = await this.#fetch(missing);
        failures = fetched ? 0 : failures + 1;
        const waitMs = fetched ? SCROLL_REST_MS : backoffMs(failures, DEFAULT_BACKOFF);
        await waitOrUntilAborted(waitMs, AbortSignal.any([closed, this.#wait.signal]));
      }
    } finally {
      this.#isFetching = false;
    }
  }

  #firstMissing(): SeqRange | null {
    return this.#wanted === null ? null : this.#options.pages.firstMissing(this.conversation, this.#wanted);
  }

  /** Fetches messages from `from` to the end of its page. Resolves to false if the attempt failed. */
  async #fetch({ from }: SeqRange): Promise<boolean> {
    const generation = this.#generation;
    const limit = PAGE_MESSAGES - ((from - 1) % PAGE_MESSAGES);
    try {
      const { messages, first_seq: firstSeq, notices = [] } = await this.#options.fetchHistory(from - 1, limit);
      if (generation !== this.#generation || this.#closed.signal.aborted) return true;
      if (firstSeq !== undefined) this.#options.onFirstSeq(firstSeq);
      this.#options.pages.put(this.conversation, messages);
      for (const notice of notices) if (notice.rev !== undefined) this.addNotice(notice.rev, notice);
      this.#options.onMessages(messages);
      this.problem.value = null;
      this.changed();
      if (messages[0]?.seq === from) return true;
      if (firstSeq !== undefined && firstSeq > from) {
        if (this.#wanted !== null) this.#wanted = { ...this.#wanted, from: Math.max(firstSeq, this.#wanted.from) };
        return true;
      }
      // Treated as a failed attempt: otherwise the seq would be requested in an endless loop without a wait.
      this.problem.value = `The server did not send message ${from}`;
      return false;
    } catch (error) {
      if (this.#closed.signal.aborted) return true;
      this.problem.value = (error as Error).message;
      if (!isTransient(error)) this.#wanted = null;
      return false;
    }
  }
}

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
