import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { BrowserContext, Locator, Page } from 'playwright-core';
import { WebBrowser, type WatchedPage } from '../../test/foreign/web/web-browser.ts';
import {
  FOUND_IN_VIEW,
  KEPT_DRAFTS,
  KEPT_UNSENT,
  WAITING_TEXTS,
  walkViewTo,
  WATCH_VIEW,
  type FoundInView,
  type ShownMessage,
} from './page-scripts.ts';
import { untilInPage } from './until-in-page.ts';

/** Pause between two texts that the tab sends. */
const WRITE_GAP_MS = 400;
const RELOAD_GAP_MS = 200;
/**
 * The browser logs errors of this form for requests that a cut, a kill or a missing network ends. Any other error fails
 * the run.
 */
const EXPECTED_COMPLAINT = /Failed to load resource|WebSocket connection to/;
/**
 * Chromium 150 rejects with this message in place of the result of a script: twice in some 40,000 scripts of three
 * tabs.
 */
const LOST_RESULT = /promise was garbage collected/;
const MAX_LOST_RESULTS = 5;

interface TabOptions {
  readonly number: number;
  readonly profile: BrowserContext;
  /** The origin at which the browser reaches the server. */
  readonly origin: string;
  /** The conversation that the tab shows, and into which it sends texts. */
  readonly conversation: number;
  /** The conversation in which the tab has a draft. */
  readonly draftConversation: number;
}

/**
 * A tab of a browser, in which somebody reads one conversation and writes into it. The tab also has a draft in another
 * conversation.
 */
export class Tab {
  /** The texts that were sent with the Enter key, in their order. */
  readonly sent: string[] = [];
  /** Violations, in words. */
  readonly violations = new Set<string>();
  /** How many of the tab's own texts the page did not show for a moment. */
  hiddenTexts = 0;
  readonly #options: TabOptions;
  #watched: WatchedPage | null = null;
  #walks = 0;
  #isWriting = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: TabOptions) {
    this.#options = options;
  }

  get draft(): string {
    return `draft of tab ${this.#options.number}`;
  }

  /** Writes the draft, and resolves when the browser has stored it. */
  async writeDraft(): Promise<void> {
    await this.#load(this.#options.draftConversation);
    await this.#field.fill(this.draft);
    await untilInPage('the browser keeps a draft', async () =>
      (await this.#read<string[]>(KEPT_DRAFTS)).includes(this.draft),
    );
  }

  /** Opens the conversation. Tries again until the server can be reached. */
  open(): Promise<void> {
    return this.#load(this.#options.conversation);
  }

  /** Opens the conversation of the draft, and resolves when the draft is in the field. */
  async findDraft(): Promise<void> {
    await this.#load(this.#options.draftConversation);
    await untilInPage(
      `tab ${this.#options.number} has its draft again`,
      async () => (await this.#field.inputValue()) === this.draft,
    );
  }

  /** The greatest seq that the tab shows. */
  async newest(): Promise<number> {
    return (await this.#found()).newest;
  }

  /** The texts that the tab shows as being sent: they wait for the server. */
  waiting(): Promise<string[]> {
    return this.#read<string[]>(WAITING_TEXTS);
  }

  /** The page's messages about a broken connection or another failure. */
  shownProblems(): Promise<string[]> {
    return this.#page.locator('.bar-problem, .timeline-problem').allInnerTexts();
  }

  startWriting(): void {
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#writing = this.#write().catch((error: unknown) => {
      this.violations.add(`tab ${this.#options.number} could not be written into: ${(error as Error).message}`);
    });
  }

  /** Resolves when the text that is being written has been sent. */
  async stopWriting(): Promise<void> {
    this.#isWriting = false;
    await this.#writing;
  }

  /**
   * Scrolls from the end up to a seq, and resolves to the messages in view. Nobody may write in the tab at that time.
   */
  walkTo(seq: number): Promise<ShownMessage[]> {
    this.#walks += 1;
    return this.#read<ShownMessage[]>(walkViewTo(seq, this.#walks));
  }

  /** Resolves when a text that was sent after this moment waits for the server. */
  async hasWaitingText(): Promise<void> {
    const sent = this.sent.length;
    await untilInPage(`a text waits in tab ${this.#options.number}`, async () =>
      (await this.waiting()).some((text) => this.sent.indexOf(text) >= sent),
    );
  }

  /** The unsent texts of all tabs, as the browser stores them. */
  keptTexts(): Promise<string[]> {
    return this.#read<string[]>(KEPT_UNSENT);
  }

  /**
   * Resolves when the browser stores exactly the texts that wait in this tab, each once and in order. Nobody may write
   * in the tab at that time.
   */
  async keepsWaitingTexts(): Promise<void> {
    const prefix = textOfTab(this.#options.number, '');
    await untilInPage(`the browser keeps the texts that wait in tab ${this.#options.number}`, async () => {
      const kept = (await this.keptTexts()).filter((text) => text.startsWith(prefix));
      return isDeepStrictEqual(
        kept,
        (await this.waiting()).filter((text) => text.startsWith(prefix)),
      );
    });
  }

  /** Closes the page once the browser has stored all texts that wait in it. */
  async close(): Promise<void> {
    await this.stopWriting();
    await this.keepsWaitingTexts();
    await this.collect();
    await this.#page.close();
    this.#watched = null;
  }

  /** Adds the results of `WATCH_VIEW` so far to `violations` and `hiddenTexts`. */
  async collect(): Promise<void> {
    const { violations, hidden } = await this.#found();
    for (const each of violations) this.violations.add(`tab ${this.#options.number}: ${each}`);
    this.hiddenTexts += hidden.length;
    for (const each of this.#watched!.complaints) {
      if (!EXPECTED_COMPLAINT.test(each)) this.violations.add(`tab ${this.#options.number}: ${each}`);
    }
  }

  get #page(): Page {
    return this.#watched!.page;
  }

  get #field(): Locator {
    return this.#page.locator('.composer textarea');
  }

  /** Runs a script again if the browser loses its result. So the script must be one that may run twice. */
  async #read<Result>(script: string): Promise<Result> {
    for (let lost = 1; ; lost += 1) {
      try {
        return await this.#page.evaluate<Result>(script);
      } catch (error) {
        if (lost === MAX_LOST_RESULTS || !LOST_RESULT.test((error as Error).message)) throw error;
        console.warn(`The browser lost the result of a script, which runs again: ${script.slice(0, 60)}`);
      }
    }
  }

  #found(): Promise<FoundInView> {
    return this.#read<FoundInView>(FOUND_IN_VIEW);
  }

  async #load(conversation: number): Promise<void> {
    if (this.#watched === null) {
      this.#watched = await WebBrowser.watch(this.#options.profile);
      await this.#page.addInitScript(WATCH_VIEW);
    }
    const url = `${this.#options.origin}/c/${conversation}`;
    // If no server answers, the browser shows an error page of its own, and the loop tries again.
    while ((await this.#page.goto(url).catch(() => null))?.ok() !== true) await wait(RELOAD_GAP_MS);
    await this.#field.waitFor();
  }

  async #write(): Promise<void> {
    // oxlint-disable-next-line no-unmodified-loop-condition -- `stopWriting` does.
    while (this.#isWriting) {
      const text = textOfTab(this.#options.number, this.sent.length + 1);
      await this.#field.fill(text);
      await this.#field.press('Enter');
      this.sent.push(text);
      await untilInPage('a text has left the field', async () => (await this.#field.inputValue()) === '');
      await wait(WRITE_GAP_MS);
    }
  }
}

function textOfTab(tab: number, text: number | ''): string {
  return `tab ${tab} text ${text}`;
}
