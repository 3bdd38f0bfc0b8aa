import { signal } from '@preact/signals';

/** The time in which a person can undo a deletion. */
const UNDO_MS = 5_000;
/**
 * If more deletions than this wait until they can no longer be undone, the oldest is sent at once. The bound exists
 * because the page sends all waiting ones when it is closed.
 */
const MAX_WAITING_DELETIONS = 20;

/** `waiting`: the deletion can be undone. `sent`: the page waits for the server's answer. */
type DeletionState = 'waiting' | 'sent';

interface PendingDeletionsOptions {
  /** Sends a deletion. `outlivesPage`: the page is being closed. Never rejects. */
  readonly remove: (conversation: number, seq: number, options: { outlivesPage: boolean }) => Promise<void>;
  readonly undoMs?: number;
}

/** Deletions of messages. Each is sent after 5 s, in which it can be undone, or at once when the page is closed. */
export class PendingDeletions {
  readonly #options: PendingDeletionsOptions;
  /** The states by `conversation:seq`, in the order in which the person deleted the messages. */
  readonly #states = signal<ReadonlyMap<string, DeletionState>>(new Map());
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(options: PendingDeletionsOptions) {
    this.#options = options;
  }

  /** The state of a message's deletion; null: the message is not being deleted. Subscribes the calling component. */
  stateOf(conversation: number, seq: number): DeletionState | null {
    return this.#states.value.get(keyOf(conversation, seq)) ?? null;
  }

  add(conversation: number, seq: number): void {
    const key = keyOf(conversation, seq);
    if (this.#states.peek().has(key)) return;
    const oldest = this.#timers.size >= MAX_WAITING_DELETIONS ? this.#timers.keys().next().value : undefined;
    if (oldest !== undefined) void this.#send(oldest, false);
    this.#setState(key, 'waiting');
    this.#timers.set(
      key,
      setTimeout(() => void this.#send(key, false), this.#options.undoMs ?? UNDO_MS),
    );
  }

  /** Undoes a deletion; false: it was already sent, or the message is not being deleted. */
  undo(conversation: number, seq: number): boolean {
    const key = keyOf(conversation, seq);
    if (!this.#timers.has(key)) return false;
    this.#clearTimer(key);
    this.#setState(key, null);
    return true;
  }

  /** Sends all waiting deletions, when the page is closed or the session ends. Resolves after their answers. */
  async sendNow({ outlivesPage }: { readonly outlivesPage: boolean }): Promise<void> {
    await Promise.all([...this.#timers.keys()].map((key) => this.#send(key, outlivesPage)));
  }

  /** Drops the waiting deletions without sending them. */
  stop(): void {
    for (const key of this.#timers.keys()) this.#clearTimer(key);
  }

  async #send(key: string, outlivesPage: boolean): Promise<void> {
    this.#clearTimer(key);
    this.#setState(key, 'sent');
    const [conversation, seq] = key.split(':').map(Number);
    await this.#options.remove(conversation!, seq!, { outlivesPage });
    this.#setState(key, null);
  }

  #clearTimer(key: string): void {
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }

  #setState(key: string, state: DeletionState | null): void {
    const next = new Map(this.#states.peek());
    if (state === null) next.delete(key);
    else next.set(key, state);
    this.#states.value = next;
  }
}

function keyOf(conversation: number, seq: number): string {
  return `${conversation}:${seq}`;
}
