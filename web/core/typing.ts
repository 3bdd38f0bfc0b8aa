import { signal } from '@preact/signals';

/** The server passes one notification of an account on in 2 seconds. */
const SEND_INTERVAL_MS = 3_000;
/** Somebody of whom nothing was heard for so long does not type any more. One notification may be lost. */
const SHOWN_MS = 7_000;
/** In all conversations; of more the page forgets the one that began first. */
const MAX_TYPISTS = 100;

interface Typist {
  readonly conversation: number;
  readonly name: string;
  readonly timer: ReturnType<typeof setTimeout>;
}

interface TypingOptions {
  /** Tells the others of a conversation that the account types. Never throws. */
  readonly send: (conversation: number) => void;
  readonly shownMs?: number;
  /** In milliseconds, never backwards. */
  readonly now?: () => number;
}

/** Who types, and telling others that the account does. */
export class Typing {
  readonly #options: TypingOptions;
  readonly #typists = signal<ReadonlyMap<string, Typist>>(new Map());
  #lastSent: { readonly conversation: number; readonly at: number } | null = null;

  constructor(options: TypingOptions) {
    this.#options = options;
  }

  /** The names of those who type in a conversation, in the order in which they began. Subscribes the calling component. */
  namesIn(conversation: number): string[] {
    return [...this.#typists.value.values()]
      .filter((each) => each.conversation === conversation)
      .map(({ name }) => name);
  }

  /** The person has typed in a conversation. The others are told, at most once in 3 seconds. */
  onTyped(conversation: number): void {
    const at = (this.#options.now ?? (() => performance.now()))();
    const last = this.#lastSent;
    if (last !== null && last.conversation === conversation && at - last.at < SEND_INTERVAL_MS) return;
    this.#lastSent = { conversation, at };
    this.#options.send(conversation);
  }

  /** The server says that somebody else types. */
  onNotification(conversation: number, { id, name }: { readonly id: number; readonly name: string }): void {
    const next = new Map(this.#typists.peek());
    const key = keyOf(conversation, id);
    clearTimeout(next.get(key)?.timer);
    const timer = setTimeout(() => this.#remove(key), this.#options.shownMs ?? SHOWN_MS);
    next.set(key, { conversation, name, timer });
    const oldest = next.size > MAX_TYPISTS ? next.entries().next().value : undefined;
    if (oldest !== undefined) {
      clearTimeout(oldest[1].timer);
      next.delete(oldest[0]);
    }
    this.#typists.value = next;
  }

  /** A message of an account has come: it does not type any more. */
  onMessage(conversation: number, account: number): void {
    this.#remove(keyOf(conversation, account));
  }

  /** Nobody types as far as this page knows, such as after a lost connection. */
  clear(): void {
    for (const { timer } of this.#typists.peek().values()) clearTimeout(timer);
    if (this.#typists.peek().size > 0) this.#typists.value = new Map();
  }

  #remove(key: string): void {
    const typists = this.#typists.peek();
    if (!typists.has(key)) return;
    clearTimeout(typists.get(key)!.timer);
    const next = new Map(typists);
    next.delete(key);
    this.#typists.value = next;
  }
}

function keyOf(conversation: number, account: number): string {
  return `${conversation}:${account}`;
}
