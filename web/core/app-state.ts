import { signal } from '@preact/signals';
import { isTransient, SessionOverError } from '../../client/core/chat-error.ts';
import type { Api } from './api.ts';
import type { BrowserSession } from './browser-session.ts';
import { BrowserStore } from './browser-store.ts';
import { ChatState } from './chat-state.ts';
import { Navigation } from './navigation.ts';
import { RetryingRead } from './persistent-read.ts';
import { isLoopback, type OpenedLink, type OpenedTokens, type PagePlace } from './place.ts';
import type { Route, ScreenBelow } from './routes.ts';
import { isOnlyWayIn, type SignOutRisks } from './sign-out-risks.ts';
import { TabChannel } from './tab-channel.ts';

/** The page assumes that the clocks of server and browser differ by at most this. */
const MAX_CLOCK_DIFFERENCE_MS = 60_000;

/** The screen that the page shows. */
type Phase =
  /** The page is waiting for the server's answer about the session. */
  | { readonly name: 'loading' }
  /** The page has another address than `http.base-uri`. */
  | { readonly name: 'elsewhere' }
  /** `problem`: why a sign-in or the connection failed. `end`: how this page's last session ended. Both may be null. */
  | { readonly name: 'signed-out'; readonly problem: string | null; readonly end: SessionEnd | null }
  | { readonly name: 'signed-in'; readonly chat: ChatState };

/** How a session ended without a sign-out in this tab. */
export interface SessionEnd {
  readonly reason: 'expired' | 'ended' | 'other-tab';
  /** The nick of the account that was signed in. */
  readonly nick: string;
  /** Whether this browser stores unsent texts of the account that was signed in. */
  readonly hasUnsentTexts: boolean;
  /** The present session of this browser if another account has signed in in another tab; otherwise null. */
  readonly successor: BrowserSession | null;
}

/** The state of the page, and the actions of its buttons. */
export class AppState {
  readonly phase = signal<Phase>({ name: 'loading' });
  readonly isBusy = signal(false);
  /** The sign-in link that a person opened, until it is used. */
  readonly link = signal<OpenedLink | null>(null);
  /** The token of the invitation that somebody opened, until it is accepted or declined. */
  readonly invite = signal<string | null>(null);
  /** The losses that a sign-out would cause, while the page asks for confirmation. */
  readonly signOutRisks = signal<SignOutRisks | null>(null);
  /** The read of the session when the page starts, which is repeated until the server answers. */
  readonly sessionRead = new RetryingRead();
  readonly place: PagePlace;
  readonly navigation: Navigation;
  readonly api: Api;
  readonly #tabs: TabChannel;
  #isReadingRisks = false;
  #isSigningOut = false;
  /** The chat that a new sign-in is replacing: the page does not report that the session of this chat has ended. */
  #replacedChat: ChatState | null = null;

  constructor(place: PagePlace, api: Api, { link, invite }: OpenedTokens) {
    this.place = place;
    this.api = api;
    this.link.value = link;
    this.invite.value = invite;
    this.#tabs = new TabChannel(place.base.pathname);
    this.navigation = new Navigation(place.base.pathname);
  }

  get chat(): ChatState | null {
    const phase = this.phase.value;
    return phase.name === 'signed-in' ? phase.chat : null;
  }

  get route(): Navigation['route'] {
    return this.navigation.route;
  }

  /** `replaces`: the route replaces the current screen in the browser's history. */
  go(route: Route, options?: { readonly replaces?: boolean }): void {
    this.navigation.go(route, options);
  }

  /** Reads the session of this browser, and shows the conversations of its account or the sign-in screen. */
  async start(): Promise<void> {
    const { base, pageOrigin } = this.place;
    if (pageOrigin !== base.origin) {
      this.phase.value = { name: 'elsewhere' };
      return;
    }
    const session = await this.sessionRead.run(() => this.api.currentSession());
    if (session !== null) await this.enter(session);
    else await this.#showSignInWithLink();
  }

  /**
   * Takes a link or an invitation that a person opens in the open page. The browser does not load the page again for a
   * new hash.
   */
  async openTokens({ link, invite }: OpenedTokens): Promise<void> {
    if (invite !== null) this.invite.value = invite;
    if (link === null) return;
    this.link.value = link;
    if (this.phase.value.name === 'signed-out') await this.#showSignInWithLink();
  }

  /** A link signs in without a click only on loopback, and only where there is no session. */
  async #showSignInWithLink(): Promise<void> {
    this.#showSignIn();
    const link = this.link.value;
    // On any other host, a person who opens a stranger's link would use the stranger's account without knowing it.
    if (link?.isPrintedByServer === true && isLoopback(this.place.base)) await this.signIn(link.token);
  }

  /**
   * Signs in by a link. `extraInput`: further input of `auth.verify`. The current screen shows why a sign-in failed.
   */
  async signIn(token: string, extraInput: object = {}): Promise<void> {
    await this.#whileBusy(async () => {
      const session = await this.api.openSession({ link: token, ...extraInput }).catch((error: unknown) => {
        // Drops a link that the server refused: the server would refuse it again.
        if (!isTransient(error)) this.link.value = null;
        throw error;
      });
      this.link.value = null;
      await this.enter(session!);
    });
  }

  /** Removes the sentence about the last sign-in that failed. */
  forgetSignInProblem(): void {
    const phase = this.phase.value;
    if (phase.name === 'signed-out' && phase.problem !== null) this.phase.value = { ...phase, problem: null };
  }

  /** Shows the conversations of a session's account. */
  async enter(session: BrowserSession): Promise<void> {
    const former = this.chat;
    this.#replacedChat = former;
    await former?.stop({ isSignOut: false });
    const chat = new ChatState(this.place, this.api, session);
    this.phase.value = { name: 'signed-in', chat };
    chat.start(conversationAtEnd(this.navigation.screenBelow));
    void chat.live.ended.then((error) => {
      if (error !== null && this.chat === chat && this.#replacedChat !== chat)
        void this.#onLiveEnded(chat, session, error);
    });
  }

  /**
   * Signs out and removes all stored data from the browser. Asks first where something would be lost; `isConfirmed`:
   * the person has already confirmed.
   */
  async signOut({ isConfirmed = false } = {}): Promise<void> {
    if (this.#isReadingRisks) return;
    if (!isConfirmed && (await this.#asksBeforeSignOut())) return;
    this.signOutRisks.value = null;
    await this.#whileBusy(async () => {
      // Read before the sign-out: the live connection may learn of the session's end first, and reset `this.chat`.
      const { chat } = this;
      // After the end of the session the server accepts neither the pending deletions nor the removal of files.
      await chat?.deletions.sendNow({ outlivesPage: false });
      await chat?.attachments.removeAll();
      await this.#endSession();
      this.#showSignIn();
      this.go({ screen: 'list' }, { replaces: true });
      await chat?.stop({ isSignOut: true });
    });
  }

  /**
   * Asks for confirmation if a sign-out would lose something. False: it would lose nothing, so the page does not ask.
   */
  async #asksBeforeSignOut(): Promise<boolean> {
    // `isBusy` stays false, because it disables the sign-out button: the dialog returns the focus to this button.
    this.#isReadingRisks = true;
    try {
      this.signOutRisks.value = await this.#readSignOutRisks();
    } finally {
      this.#isReadingRisks = false;
    }
    return this.signOutRisks.value !== null;
  }

  /** The losses that a sign-out would cause; null: none. */
  async #readSignOutRisks(): Promise<SignOutRisks | null> {
    const [losesTexts = false, losesAccess] = await Promise.all([
      this.chat?.hasUnsentTexts(),
      // A sign-out also works if the server does not answer these requests.
      isOnlyWayIn(this.api).catch(() => false),
    ]);
    return losesTexts || losesAccess ? { losesTexts, losesAccess } : null;
  }

  async #endSession(): Promise<void> {
    this.#isSigningOut = true;
    this.#tabs.announceSignOut();
    try {
      await this.api.signOut();
    } catch (error) {
      this.#tabs.withdrawSignOut();
      throw error;
    } finally {
      this.#isSigningOut = false;
    }
  }

  /** If the work fails, shows why: above the conversations of a signed-in account, otherwise on the sign-in screen. */
  async #whileBusy(work: () => Promise<void>): Promise<void> {
    this.isBusy.value = true;
    try {
      await work();
    } catch (error) {
      const { message } = error as Error;
      if (this.chat !== null) this.chat.actionProblem.value = message;
      else this.#showSignIn({ problem: message });
    } finally {
      this.isBusy.value = false;
    }
  }

  #showSignIn({ problem = null, end = null }: { problem?: string | null; end?: SessionEnd | null } = {}): void {
    this.signOutRisks.value = null;
    this.phase.value = { name: 'signed-out', problem, end };
  }

  async #onLiveEnded(chat: ChatState, { account, expiresAt }: BrowserSession, error: Error): Promise<void> {
    if (this.#isSigningOut || !(error instanceof SessionOverError)) {
      this.#showSignIn({ problem: this.#isSigningOut ? null : error.message });
      await chat.stop({ isSignOut: this.#isSigningOut });
      return;
    }
    const isSignOut = this.#tabs.heardSignOut;
    const isExpired = expiresAt !== null && expiresAt.getTime() <= Date.now() + MAX_CLOCK_DIFFERENCE_MS;
    const reason = isSignOut ? 'other-tab' : isExpired ? 'expired' : 'ended';
    const end: SessionEnd = { reason, nick: account.nick, hasUnsentTexts: false, successor: null };
    this.#showSignIn({ end });
    await chat.stop({ isSignOut });
    const hasTextDatabase = !isSignOut && expiresAt === null;
    const [successor, hasUnsentTexts] = await Promise.all([
      this.api.currentSession().catch(() => null),
      // If `hasTextDatabase` is false, the browser has no database of texts, and opening it would create one.
      hasTextDatabase && this.#hasStoredTexts(account.id),
    ]);
    // During these requests the person may have signed in again.
    const phase = this.phase.value;
    if (phase.name !== 'signed-out' || phase.end !== end) return;
    if (successor?.account.id === account.id) await this.enter(successor);
    else this.#showSignIn({ end: { ...end, hasUnsentTexts, successor } });
  }

  async #hasStoredTexts(account: number): Promise<boolean> {
    const store = new BrowserStore(this.place.base.pathname);
    const hasTexts = await store.hasTextsOf(account);
    await store.close();
    return hasTexts;
  }
}

/** The conversation that a screen shows from its end or from its first unread message; null: none. */
function conversationAtEnd(below: ScreenBelow): number | null {
  return below.screen === 'conversation' && below.seq === null ? below.conversation : null;
}
