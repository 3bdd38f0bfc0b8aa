import type { Draft } from './browser-store.ts';

/** A draft is stored after this time without typing, and when the page is hidden. */
const STORE_DELAY_MS = 300;

interface DraftsOptions {
  readonly account: number;
  readonly storeDraft: (draft: Draft) => Promise<void>;
  readonly onChange: () => void;
}

/** The drafts of an account, one in each conversation. */
export class Drafts {
  readonly #options: DraftsOptions;
  readonly #textByConversation = new Map<number, string>();
  readonly #unstoredConversations = new Set<number>();
  #storeTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: DraftsOptions) {
    this.#options = options;
  }

  /**
   * Restores stored drafts. A text that was typed before the drafts were read takes precedence over the stored draft.
   */
  restore(drafts: readonly Draft[]): void {
    for (const { account, conversation, text } of drafts) {
      if (account !== this.#options.account || this.#textByConversation.has(conversation)) continue;
      this.#textByConversation.set(conversation, text);
    }
    this.#options.onChange();
  }

  get hasAnyText(): boolean {
    return [...this.#textByConversation.values()].some((text) => text !== '');
  }

  textOf(conversation: number): string {
    return this.#textByConversation.get(conversation) ?? '';
  }

  set(conversation: number, text: string): void {
    const hadText = this.textOf(conversation) !== '';
    this.#textByConversation.set(conversation, text);
    this.#unstoredConversations.add(conversation);
    clearTimeout(this.#storeTimer);
    this.#storeTimer = setTimeout(() => this.storeNow(), STORE_DELAY_MS);
    if (hadText !== (text !== '')) this.#options.onChange();
  }

  storeNow(): void {
    clearTimeout(this.#storeTimer);
    for (const conversation of this.#unstoredConversations) {
      const text = this.textOf(conversation);
      void this.#options.storeDraft({ account: this.#options.account, conversation, text });
    }
    this.#unstoredConversations.clear();
  }
}
