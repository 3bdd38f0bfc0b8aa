import { signal } from '@preact/signals';
import { isTransient, SessionOverError } from '../../client/core/chat-error.ts';
import { backoffMs, DEFAULT_BACKOFF } from '../../client/core/backoff.ts';
import type { Api, SignedInAccount } from './api.ts';
import { ChatState } from './chat-state.ts';
import { Navigation } from './navigation.ts';
import { isLoopback, type OpenedLink, type Place } from './place.ts';
import type { Route } from './routes.ts';

/** Which screen there is. */
type Phase =
  | { readonly name: 'loading' }
  /** The server cannot answer now; the page retries. */
  | { readonly name: 'unavailable'; readonly sentence: string }
  /** The page has another address than `http.base-uri`. */
  | { readonly name: 'elsewhere' }
  | { readonly name: 'signed-out'; readonly sentence: string | null }
  | { readonly name: 'signed-in'; readonly chat: ChatState };

/** What the page shows, and what its buttons do. */
export class AppState {
  readonly phase = signal<Phase>({ name: 'loading' });
  readonly isBusy = signal(false);
  /** The link that opened the page, as long as it was not used. */
  readonly link = signal<OpenedLink | null>(null);
  readonly place: Place;
  readonly navigation: Navigation;
  readonly #api: Api;

  constructor(place: Place, api: Api, link: OpenedLink | null) {
    this.place = place;
    this.#api = api;
    this.link.value = link;
    this.navigation = new Navigation(place.base.pathname);
  }

  get chat(): ChatState | null {
    const phase = this.phase.value;
    return phase.name === 'signed-in' ? phase.chat : null;
  }

  get route(): Navigation['route'] {
    return this.navigation.route;
  }

  /** `replaces`: going back leads past the screen that there was. */
  go(route: Route, options?: { readonly replaces?: boolean }): void {
    this.navigation.go(route, options);
  }

  /** Reads the session. A link signs in without a click only on loopback, and only where there is no session. */
  async start(): Promise<void> {
    const { base, pageOrigin } = this.place;
    if (pageOrigin !== base.origin) {
      this.phase.value = { name: 'elsewhere' };
      return;
    }
    const account = await this.#currentAccountOnceAvailable();
    if (account !== null) this.#enter(account);
    else {
      this.phase.value = { name: 'signed-out', sentence: null };
      const link = this.link.value;
      // Elsewhere a link that somebody was sent would make them its sender's guest without their knowledge.
      if (link?.isPrinted === true && isLoopback(base)) await this.signIn(link.token);
    }
  }

  async signIn(token: string): Promise<void> {
    await this.#whileBusy(async () => {
      const account = await this.#api.signInByLink(token).catch((error: unknown) => {
        // A link that was refused is refused for good.
        if (!isTransient(error)) this.link.value = null;
        throw error;
      });
      this.link.value = null;
      await this.chat?.stop({ isSignOut: false });
      this.#enter(account);
    });
  }

  async signOut(): Promise<void> {
    await this.#whileBusy(async () => {
      // Read before the call: the live connection may learn of the session's end first, and end the chat.
      const { chat } = this;
      // Nobody can send them after the end of the session.
      await chat?.deletions.sendNow({ outlivesPage: false });
      await this.#api.signOut();
      this.phase.value = { name: 'signed-out', sentence: null };
      this.go({ screen: 'list' }, { replaces: true });
      await chat?.stop({ isSignOut: true });
    });
  }

  async #currentAccountOnceAvailable(): Promise<SignedInAccount | null> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.#api.currentAccount();
      } catch (error) {
        const { message } = error as Error;
        this.phase.value = { name: 'unavailable', sentence: message };
        const waitMs = isTransient(error) ? backoffMs(failures, DEFAULT_BACKOFF) : DEFAULT_BACKOFF.maxMs;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }

  /** Shows why it failed where it did: a sign-in on the sign-in screen, a sign-out above the conversations. */
  async #whileBusy(work: () => Promise<void>): Promise<void> {
    this.isBusy.value = true;
    try {
      await work();
    } catch (error) {
      const { message } = error as Error;
      if (this.chat !== null) this.chat.actionProblem.value = message;
      else this.phase.value = { name: 'signed-out', sentence: message };
    } finally {
      this.isBusy.value = false;
    }
  }

  #enter(account: SignedInAccount): void {
    const chat = new ChatState(this.place, this.#api, account);
    this.phase.value = { name: 'signed-in', chat };
    chat.start();
    void chat.live.ended.then((error) => {
      if (this.chat === chat) this.#onLiveEnded(chat, error);
    });
  }

  /** What was written and not sent stays in the browser. */
  #onLiveEnded(chat: ChatState, error: Error | null): void {
    const isOver = error instanceof SessionOverError;
    this.phase.value = {
      name: 'signed-out',
      sentence: isOver ? 'Your session has ended: sign in again.' : (error?.message ?? null),
    };
    void chat.stop({ isSignOut: false });
  }
}
