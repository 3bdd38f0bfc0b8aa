import { backoffMs, DEFAULT_BACKOFF } from '../../client/core/backoff.ts';
import { isTransient, ServerError } from '../../client/core/chat-error.ts';
import type { Message } from '../../client/core/shapes.ts';
import { waitOrUntilAborted } from '../../client/core/wait.ts';
import type { StoredFile } from './uploads/attachments.ts';

/** A message that a person wrote on this page, and that the conversation does not show yet. */
export interface QueuedMessage {
  /** The server stores one message per `clientId`, so a repeated request posts no second one. */
  readonly clientId: string;
  readonly account: number;
  readonly conversation: number;
  readonly text: string;
  /** The files of the message; absent in entries that older versions of this page stored. */
  readonly files?: readonly StoredFile[];
  /** Unix time in milliseconds. */
  readonly createdAt: number;
  /** Why the server refused the message; null: the message waits to be sent, or for the server's answer. */
  readonly refusal: string | null;
}

interface SendQueueOptions {
  readonly account: number;
  /** Resolves to the seq of the stored message. Rejects with ServerError and ConnectionError. */
  readonly send: (entry: QueuedMessage) => Promise<number>;
  /** `keep` stores an entry in the browser, and `remove` removes it from there. They never reject. */
  readonly keep: (entry: QueuedMessage) => Promise<void>;
  readonly remove: (clientId: string) => Promise<void>;
  /** Whether the page shows a message, or will fetch it when its conversation is opened. */
  readonly isShown: (conversation: number, seq: number) => boolean;
  readonly onChange: () => void;
  readonly now?: () => number;
}

const MAX_QUEUED_MESSAGES = 500;
/**
 * The page sends no message again that was written longer ago than this. The server remembers a `client_id` for a day;
 * after that day it would post the message twice.
 */
const MAX_MESSAGE_AGE_MS = 23 * 60 * 60 * 1_000;
export const TOO_OLD_REFUSAL =
  'After 23 hours a repeat could post it twice: look for it in the conversation, then send it again or delete it';
/** The code of the refusal after the session has ended. The entries then wait for the next sign-in. */
const SESSION_OVER_CODE = 'unauthenticated';

interface PendingSend {
  entry: QueuedMessage;
  /** The seq in the server's answer; null: no answer yet. */
  seq: number | null;
}

/**
 * Sends messages one after the other in each conversation, and repeats each one until the server has answered it. An
 * entry exists until its message is shown at its seq, so that the message is visible exactly once at any moment.
 */
export class SendQueue {
  readonly #options: SendQueueOptions;
  readonly #byClientId = new Map<string, PendingSend>();
  readonly #sendingConversations = new Set<number>();
  readonly #stopped = new AbortController();
  #waitAbort = new AbortController();

  constructor(options: SendQueueOptions) {
    this.#options = options;
  }

  /** Whether `add` would accept one more message. */
  get hasCapacity(): boolean {
    return this.#byClientId.size < MAX_QUEUED_MESSAGES;
  }

  /** Whether a message waits to be sent, or was refused. */
  get hasUnsentMessages(): boolean {
    return [...this.#byClientId.values()].some(({ seq }) => seq === null);
  }

  /** The entries to show after the newest message of a conversation. */
  entriesOf(conversation: number): QueuedMessage[] {
    const sendsOfConversation = [...this.#byClientId.values()].filter(
      ({ entry }) => entry.conversation === conversation,
    );
    return sendsOfConversation.filter((each) => !this.#isShown(each)).map(({ entry }) => entry);
  }

  /** Queues a text with its files; false: the queue is full. */
  add(conversation: number, text: string, files: readonly StoredFile[] = []): boolean {
    if (!this.hasCapacity) return false;
    const createdAt = this.#now();
    const entry = {
      clientId: newClientId(),
      account: this.#options.account,
      conversation,
      text,
      files,
      createdAt,
      refusal: null,
    };
    this.#insert(entry);
    void this.#options.keep(entry).then(() => this.#sendAll(conversation));
    this.#options.onChange();
    return true;
  }

  /** Queues the entries that the browser had stored, by their time of creation, before the entries of this page. */
  restore(entries: readonly QueuedMessage[]): void {
    const ownEntries = entries.filter(
      ({ account, clientId }) => account === this.#options.account && !this.#byClientId.has(clientId),
    );
    const entriesOfThisPage = [...this.#byClientId];
    this.#byClientId.clear();
    for (const entry of ownEntries.sort((a, b) => a.createdAt - b.createdAt).slice(0, MAX_QUEUED_MESSAGES)) {
      this.#insert(this.#isTooOld(entry) ? { ...entry, refusal: entry.refusal ?? TOO_OLD_REFUSAL } : entry);
    }
    for (const [clientId, sending] of entriesOfThisPage) this.#byClientId.set(clientId, sending);
    for (const { conversation } of ownEntries) void this.#sendAll(conversation);
    this.#options.onChange();
  }

  /** Sends a refused entry again, as a new request. */
  retry(clientId: string): void {
    const sending = this.#byClientId.get(clientId);
    if (sending === undefined || sending.entry.refusal === null) return;
    const { conversation, text, files } = sending.entry;
    this.discard(clientId);
    this.add(conversation, text, files);
  }

  /** Removes a refused entry. */
  discard(clientId: string): void {
    if (this.#byClientId.get(clientId)?.entry.refusal === null) return;
    this.#remove(clientId);
  }

  /** Notes that a message is stored, which has arrived in a change, an answer or the history. */
  onOwnMessage(conversation: number, { client_id: clientId, seq }: Message): void {
    const sending = clientId === undefined ? undefined : this.#byClientId.get(clientId);
    if (sending?.entry.conversation !== conversation) return;
    sending.seq = seq;
    sending.entry = { ...sending.entry, refusal: null };
    void this.#options.remove(sending.entry.clientId);
    this.#options.onChange();
  }

  /** Removes the entries of messages that the page shows; `entriesOf` omits them already. */
  forgetShownEntries(): void {
    for (const [clientId, sending] of this.#byClientId) if (this.#isShown(sending)) this.#remove(clientId);
  }

  /** Ends the wait before the next attempt to send, because the server is reachable again. */
  wake(): void {
    this.#waitAbort.abort();
    this.#waitAbort = new AbortController();
  }

  stop(): void {
    this.#stopped.abort();
    this.wake();
  }

  #isShown({ entry, seq }: PendingSend): boolean {
    return seq !== null && this.#options.isShown(entry.conversation, seq);
  }

  #isTooOld({ createdAt }: QueuedMessage): boolean {
    return this.#now() - createdAt > MAX_MESSAGE_AGE_MS;
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }

  #insert(entry: QueuedMessage): void {
    this.#byClientId.set(entry.clientId, { entry, seq: null });
  }

  #remove(clientId: string): void {
    this.#byClientId.delete(clientId);
    void this.#options.remove(clientId);
    this.#options.onChange();
  }

  async #sendAll(conversation: number): Promise<void> {
    if (this.#sendingConversations.has(conversation)) return;
    this.#sendingConversations.add(conversation);
    try {
      for (let next = this.#nextToSend(conversation); next !== undefined; next = this.#nextToSend(conversation))
        await this.#sendOne(next);
    } finally {
      this.#sendingConversations.delete(conversation);
    }
  }

  #nextToSend(conversation: number): PendingSend | undefined {
    if (this.#stopped.signal.aborted) return undefined;
    return [...this.#byClientId.values()].find(
      ({ entry, seq }) => entry.conversation === conversation && entry.refusal === null && seq === null,
    );
  }

  async #sendOne(sending: PendingSend): Promise<void> {
    const { clientId } = sending.entry;
    const isWaiting = (): boolean => sending.seq === null && this.#byClientId.has(clientId);
    for (let failures = 0; !this.#stopped.signal.aborted && isWaiting(); failures += 1) {
      if (this.#isTooOld(sending.entry)) return this.#refuse(sending, TOO_OLD_REFUSAL);
      try {
        const seq = await this.#options.send(sending.entry);
        sending.seq = seq;
        void this.#options.remove(clientId);
        if (this.#isShown(sending)) this.#remove(clientId);
        return;
      } catch (error) {
        if (error instanceof ServerError && error.code === SESSION_OVER_CODE) return this.stop();
        if (!isTransient(error)) return this.#refuse(sending, (error as Error).message);
        await waitOrUntilAborted(backoffMs(failures, DEFAULT_BACKOFF), this.#waitAbort.signal);
      }
    }
  }

  #refuse(sending: PendingSend, refusal: string): void {
    sending.entry = { ...sending.entry, refusal };
    void this.#options.keep(sending.entry);
    this.#options.onChange();
  }
}

/** Does not use `crypto.randomUUID`, which only exists in secure contexts. */
function newClientId(): string {
  return `web-${[...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
