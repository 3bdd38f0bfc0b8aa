import type { Draft } from './browser-store.ts';

/** A draft is stored after this time without typing, and when the page is hidden. */
const KEEP_AFTER_MS = 300;

interface DraftsOptions {
  readonly account: number;
  readonly keep: (draft: Draft) => Promise<void>;
  readonly onChange: () => void;
}

/** The drafts of an account, one in each conversation. */
export class Drafts {
  readonly #options: DraftsOptions;
  readonly #textByConversation = new Map<number, string>();
  readonly #unkept = new Set<number>();
  #timer: ReturnType<typeof setTimeout> | undefined;

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

  get hasAny(): boolean {
    return [...this.#textByConversation.values()].some((text) => text !== '');
  }

  textOf(conversation: number): string {
    return this.#textByConversation.get(conversation) ?? '';
  }

  set(conversation: number, text: string): void {
    const hadText = this.textOf(conversation) !== '';
    this.#textByConversation.set(conversation, text);
    this.#unkept.add(conversation);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.keepNow(), KEEP_AFTER_MS);
    if (hadText !== (text !== '')) this.#options.onChange();
  }

  keepNow(): void {
    clearTimeout(this.#timer);
    for (const conversation of this.#unkept) {
      const text = this.textOf(conversation);
      void this.#options.keep({ account: this.#options.account, conversation, text });
    }
    this.#unkept.clear();
  }
}
