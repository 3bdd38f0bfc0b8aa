import { signal } from '@preact/signals';

/** In a group with more members the page does not tell the server that the person types. */
export const MAX_MEMBERS_WITH_TYPING = 200;
/**
 * The page reports typing at most once in this time. The server forwards at most one typing notification of an account
 * in 2 seconds.
 */
const TYPING_SEND_INTERVAL_MS = 3_000;
/**
 * A person is shown as typing for this time after a notification, so that a single lost notification does not hide
 * them.
 */
const TYPING_SHOWN_MS = 7_000;
/**
 * The maximum number of people who are shown as typing, in all conversations together. If there are more, the page
 * drops the person who began first.
 */
const MAX_TYPISTS = 100;

interface Typist {
  readonly conversation: number;
  readonly name: string;
  readonly timer: ReturnType<typeof setTimeout>;
}

interface TypingOptions {
  /** Tells the others of a conversation that the account types. Never throws. */
  readonly sendTyping: (conversation: number) => void;
  readonly shownMs?: number;
  /** The time in milliseconds; never decreases. */
  readonly now?: () => number;
}

/** Stores who types, and tells the server when the signed-in account types. */
export class Typing {
  readonly #options: TypingOptions;
  readonly #typists = signal<ReadonlyMap<string, Typist>>(new Map());
  #lastSent: { readonly conversation: number; readonly at: number } | null = null;

  constructor(options: TypingOptions) {
    this.#options = options;
  }

  /**
   * The names of the people who type in a conversation, in the order in which they began. Subscribes the calling
   * component.
   */
  typistNamesIn(conversation: number): string[] {
    return [...this.#typists.value.values()]
      .filter((each) => each.conversation === conversation)
      .map(({ name }) => name);
  }

  /** Called when the person types in a conversation. Tells the other members at most once in 3 seconds. */
  onTyped(conversation: number): void {
    const at = (this.#options.now ?? (() => performance.now()))();
    const last = this.#lastSent;
    if (last !== null && last.conversation === conversation && at - last.at < TYPING_SEND_INTERVAL_MS) return;
    this.#lastSent = { conversation, at };
    this.#options.sendTyping(conversation);
  }

  /** Handles a notification that another account types. */
  onTypingNotification(conversation: number, { id, name }: { readonly id: number; readonly name: string }): void {
    const next = new Map(this.#typists.peek());
    const key = keyOf(conversation, id);
    clearTimeout(next.get(key)?.timer);
    const timer = setTimeout(() => this.#remove(key), this.#options.shownMs ?? TYPING_SHOWN_MS);
    next.set(key, { conversation, name, timer });
    const oldest = next.size > MAX_TYPISTS ? next.entries().next().value : undefined;
    if (oldest !== undefined) {
      clearTimeout(oldest[1].timer);
      next.delete(oldest[0]);
    }
    this.#typists.value = next;
  }

  /** Called when a message of an account has arrived: the account no longer types. */
  onMessage(conversation: number, account: number): void {
    this.#remove(keyOf(conversation, account));
  }

  /** Forgets who types, for instance after a lost connection. */
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
