import { signal } from '@preact/signals';
import { backoffMs, DEFAULT_BACKOFF } from '../../client/core/backoff.ts';
import { isTransient } from '../../client/core/chat-error.ts';
import { waitOrUntilAborted } from '../../client/core/wait.ts';
import type { Message, Notice } from '../../client/core/shapes.ts';
import { PAGE_MESSAGES, type MessagePages, type SeqRange } from './message-pages.ts';

/**
 * The pause between two requests for messages. While a person drags the scroll bar, messages that are out of view again
 * after the pause are not fetched.
 */
const FETCH_PAUSE_MS = 40;
/** The number of messages that `fetchNewest` requests: more than a screen shows. */
const NEWEST_MESSAGES = 80;

/** Messages as the server answers them, in the order of their seqs. */
export interface FetchedMessages {
  readonly messages: readonly Message[];
  readonly first_seq?: number | undefined;
  readonly notices?: readonly Notice[] | undefined;
}

interface TimelineOptions {
  readonly conversation: number;
  readonly pages: MessagePages;
  /** `after` null: the newest messages. */
  readonly fetchHistory: (after: number | null, limit: number) => Promise<FetchedMessages>;
  readonly onFirstSeq: (seq: number) => void;
  readonly onMessages: (messages: readonly Message[]) => void;
}

/** Fetches the messages of one conversation that are in view. */
export class Timeline {
  /** Why messages cannot be fetched, or null. */
  readonly problem = signal<string | null>(null);
  /** A counter that rises when messages or notices arrived or changed. */
  readonly version = signal(0);
  readonly #options: TimelineOptions;
  readonly #closed = new AbortController();
  #wanted: SeqRange | null = null;
  #isFetching = false;
  #hasNoticesOfEmptyTimeline = false;
  #waitAbort = new AbortController();
  /** A counter that rises when the server lost changes: answers to earlier requests are then ignored. */
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

  /**
   * Fetches the newest messages, while the page does not know yet how many there are. Ignores a failure: `want` fetches
   * what is then missing.
   */
  async fetchNewest(): Promise<void> {
    if (this.#isFetching) return;
    this.#isFetching = true;
    const generation = this.#generation;
    try {
      const fetched = await this.#options.fetchHistory(null, NEWEST_MESSAGES);
      if (this.#isCurrent(generation)) this.#put(fetched);
    } catch {
      // The fetch of the range in view fails for the same reason, and shows it.
    } finally {
      this.#isFetching = false;
    }
    if (this.#wanted !== null && !this.#closed.signal.aborted) void this.#fetchWanted();
  }

  /** Fetches the notices of a conversation without messages. */
  wantNoticesOfEmpty(): void {
    this.want({ fromSeq: 1, toSeq: 0 });
  }

  /** Stores a notice and draws it. */
  addNotice(rev: number, notice: Notice): void {
    this.#options.pages.putNotice(this.conversation, rev, notice);
    this.changed();
  }

  changed(): void {
    this.version.value += 1;
  }

  /** Fetches the range in view again, after the page dropped messages that the server has lost. */
  refetch(): void {
    this.#generation += 1;
    this.#hasNoticesOfEmptyTimeline = false;
    this.changed();
    if (this.#wanted !== null) this.want(this.#wanted);
  }

  /** Ends the wait before the next attempt to fetch, because the server is reachable again. */
  wake(): void {
    this.#waitAbort.abort();
    this.#waitAbort = new AbortController();
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
        const waitMs = fetched ? FETCH_PAUSE_MS : backoffMs(failures, DEFAULT_BACKOFF);
        await waitOrUntilAborted(waitMs, AbortSignal.any([closed, this.#waitAbort.signal]));
      }
    } finally {
      this.#isFetching = false;
    }
  }

  /** The next range to fetch, or null. An empty range stands for the notices of a conversation without messages. */
  #firstMissing(): SeqRange | null {
    const wanted = this.#wanted;
    if (wanted === null) return null;
    if (wanted.toSeq < wanted.fromSeq) return this.#hasNoticesOfEmptyTimeline ? null : wanted;
    return this.#options.pages.firstMissing(this.conversation, wanted);
  }

  /** Fetches messages from `from` to the end of its page. Resolves to false if the attempt failed. */
  async #fetch({ fromSeq: from, toSeq: to }: SeqRange): Promise<boolean> {
    const generation = this.#generation;
    const limit = PAGE_MESSAGES - ((from - 1) % PAGE_MESSAGES);
    try {
      const fetched = await this.#options.fetchHistory(from - 1, limit);
      if (!this.#isCurrent(generation)) return true;
      this.#put(fetched);
      const { messages, first_seq: firstSeq } = fetched;
      if (to < from) this.#hasNoticesOfEmptyTimeline = true;
      if (to < from || messages[0]?.seq === from) return true;
      if (firstSeq !== undefined && firstSeq > from) {
        if (this.#wanted !== null)
          this.#wanted = { ...this.#wanted, fromSeq: Math.max(firstSeq, this.#wanted.fromSeq) };
        return true;
      }
      // A missing message counts as a failed attempt: otherwise the page would request it in an endless loop without a
      // wait.
      this.problem.value = `The server did not send message ${from}`;
      return false;
    } catch (error) {
      if (this.#closed.signal.aborted) return true;
      this.problem.value = (error as Error).message;
      if (!isTransient(error)) this.#wanted = null;
      return false;
    }
  }

  /** False: an answer to a request of this generation is to be ignored. */
  #isCurrent(generation: number): boolean {
    return generation === this.#generation && !this.#closed.signal.aborted;
  }

  #put({ messages, first_seq: firstSeq, notices = [] }: FetchedMessages): void {
    const { pages, conversation } = this.#options;
    if (firstSeq !== undefined) this.#options.onFirstSeq(firstSeq);
    pages.put(conversation, messages);
    for (const notice of notices) if (notice.rev !== undefined) pages.putNotice(conversation, notice.rev, notice);
    this.#options.onMessages(messages);
    this.problem.value = null;
    this.changed();
  }
}
