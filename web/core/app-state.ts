import { signal } from '@preact/signals';
import { isTransient, ServerError, SessionOverError } from '../../client/core/chat-error.ts';
import type { ChatEvent } from '../../client/core/events.ts';
import { LiveClient } from '../../client/core/live-client.ts';
import { anything } from '../../client/core/decode.ts';
import { backoffMs, DEFAULT_BACKOFF } from '../../client/core/backoff.ts';
import type { Conversation } from '../../client/core/shapes.ts';
import type { Api, SignedInAccount } from './api.ts';
import { isLoopback, type OpenedLink, type Place } from './place.ts';
import { webSocketConnect } from './websocket.ts';

/** Least time between two reads of the list, whatever the rate of new messages. */
const RELOAD_INTERVAL_MS = 1_000;

/** Which screen there is. */
type Phase =
  | { readonly name: 'loading' }
  /** The server cannot answer now; the page retries. */
  | { readonly name: 'unavailable'; readonly sentence: string }
  /** The page has another address than `http.base-uri`. */
  | { readonly name: 'elsewhere' }
  | { readonly name: 'signed-out'; readonly sentence: string | null }
  | { readonly name: 'signed-in'; readonly account: SignedInAccount };

/** What the page shows, and what its buttons do. */
export class AppState {
  readonly phase = signal<Phase>({ name: 'loading' });
  /** Null: not read yet. */
  readonly conversations = signal<readonly Conversation[] | null>(null);
  /** Why nothing new comes, or null. */
  readonly connectionProblem = signal<string | null>(null);
  readonly isBusy = signal(false);
  /** The link that opened the page, as long as it was not used. */
  readonly link = signal<OpenedLink | null>(null);
  readonly place: Place;
  readonly #api: Api;
  #live: LiveClient | null = null;
  #reloadTimer: ReturnType<typeof setTimeout> | null = null;

  constructor(place: Place, api: Api, link: OpenedLink | null) {
    this.place = place;
    this.#api = api;
    this.link.value = link;
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
      // Elsewhere a link that somebody was sent would make them its sender's guest without a word.
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
      await this.#leave();
      this.#enter(account);
    });
  }

  async signOut(): Promise<void> {
    await this.#whileBusy(async () => {
      await this.#api.signOut();
      await this.#leave();
      this.phase.value = { name: 'signed-out', sentence: null };
    });
  }

  /** Tells the server whether somebody looks: devices of an account that nobody looks at are notified. */
  async tellForeground(isForeground: boolean): Promise<void> {
    const options = { decode: anything, failsWhenDisconnected: true };
    // Without a connection there is nothing to tell; the next one is told when it is there.
    await this.#live?.call('live.foreground', { foreground: isForeground }, options).catch(() => {});
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

  /** Shows why it failed where it did: a sign-in on the sign-in screen, a sign-out on top of the list. */
  async #whileBusy(work: () => Promise<void>): Promise<void> {
    this.isBusy.value = true;
    try {
      await work();
    } catch (error) {
      const { message } = error as Error;
      if (this.phase.value.name === 'signed-in') this.connectionProblem.value = message;
      else this.phase.value = { name: 'signed-out', sentence: message };
    } finally {
      this.isBusy.value = false;
    }
  }

  #enter(account: SignedInAccount): void {
    this.connectionProblem.value = null;
    this.phase.value = { name: 'signed-in', account };
    const live = new LiveClient({
      connect: webSocketConnect(this.place.base),
      token: null,
      follow: { resumeRevByConversation: new Map(), unknownStartAt: 'now', onlyConversations: null },
      listener: (event) => this.#onEvent(event),
    });
    this.#live = live;
    live.start();
    void live.ended.then((error) => {
      if (this.#live === live) this.#onLiveEnded(error);
    });
  }

  async #leave(): Promise<void> {
    const live = this.#live;
    this.#live = null;
    if (this.#reloadTimer !== null) clearTimeout(this.#reloadTimer);
    this.#reloadTimer = null;
    this.conversations.value = null;
    await live?.stop();
  }

  #onEvent(event: ChatEvent): void {
    if (event.type === 'disconnected') this.connectionProblem.value = event.reason;
    else if (event.type === 'connected') {
      this.connectionProblem.value = null;
      void this.tellForeground(!document.hidden);
    } else this.#reloadSoon();
  }

  #onLiveEnded(error: Error | null): void {
    void this.#leave();
    const isOver = error instanceof SessionOverError;
    this.phase.value = {
      name: 'signed-out',
      sentence: isOver ? 'Your session has ended: sign in again.' : (error?.message ?? null),
    };
  }

  #reloadSoon(): void {
    this.#reloadTimer ??= setTimeout(
      () => {
        this.#reloadTimer = null;
        void this.#reload();
      },
      this.conversations.value === null ? 0 : RELOAD_INTERVAL_MS,
    );
  }

  async #reload(): Promise<void> {
    const live = this.#live;
    if (live === null) return;
    try {
      const conversations = await this.#api.conversations();
      if (this.#live === live) this.conversations.value = conversations;
    } catch (error) {
      // The live connection says when the session is over.
      if (error instanceof ServerError && error.code === 'unauthenticated') return;
      this.connectionProblem.value = (error as Error).message;
      if (isTransient(error)) this.#reloadSoon();
    }
  }
}
