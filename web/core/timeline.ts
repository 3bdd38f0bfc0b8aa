import { signal } from '@preact/signals';
import { backoffMs, DEFAULT_BACKOFF } from '../../client/core/backoff.ts';
import { isTransient } from '../../client/core/chat-error.ts';
import { waitOrUntilAborted } from '../../client/core/wait.ts';
import type { Message, Notice } from '../../client/core/shapes.ts';
import { PAGE_MESSAGES, type MessagePages, type SeqRange } from './message-pages.ts';

/** Between two requests while somebody drags the bar: what they have passed is not fetched. */
const SCROLL_REST_MS = 40;

/** Those that were fetched first go first. */
const MAX_NOTICES = 500;
const NO_NOTICES: readonly Notice[] = [];

/** Messages as the server answers them, in the order of their seqs. */
export interface FetchedMessages {
  readonly messages: readonly Message[];
  readonly first_seq?: number | undefined;
  readonly notices?: readonly Notice[] | undefined;
}

/** What a timeline works with. */
interface TimelineOptions {
  readonly conversation: number;
  readonly pages: MessagePages;
  readonly fetchHistory: (after: number, limit: number) => Promise<FetchedMessages>;
  readonly onFirstSeq: (seq: number) => void;
  readonly onMessages: (messages: readonly Message[]) => void;
}

/** Fetches the messages of one conversation that somebody looks at. */
export class Timeline {
  /** Why messages do not come, or null. */
  readonly problem = signal<string | null>(null);
  /** Raised when messages came or changed. */
  readonly version = signal(0);
  readonly #options: TimelineOptions;
  readonly #closed = new AbortController();
  /** By rev. */
  readonly #notices = new Map<number, Notice>();
  /** The same by the message before them: each row asks for its own whenever it may be drawn again. */
  #noticesBySeq: Map<number, readonly Notice[]> | null = null;
  #wanted: SeqRange | null = null;
  #isFetching = false;
  #wait = new AbortController();
  /** Raised when the server lost changes: what was asked for before does not count. */
  #generation = 0;

  constructor(options: TimelineOptions) {
    this.#options = options;
  }

  get conversation(): number {
    return this.#options.conversation;
  }

  /** Says what is looked at; what is not here of it is fetched. */
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

  /** Takes a notice, which may be here already. */
  addNotice(rev: number, notice: Notice): void {
    this.#notices.set(rev, notice);
    if (this.#notices.size > MAX_NOTICES) this.#notices.delete(this.#notices.keys().next().value!);
    this.#noticesBySeq = null;
    this.changed();
  }

  changed(): void {
    this.version.value += 1;
  }

  /** Fetches again what is looked at, after messages were forgotten. */
  refetch(): void {
    this.#generation += 1;
    this.#notices.clear();
    this.#noticesBySeq = null;
    this.changed();
    if (this.#wanted !== null) this.want(this.#wanted);
  }

  /** Tries at once, since the server can be reached again. */
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

  /** Whether the messages came. */
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
      // A seq without a message would be asked for without end.
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
