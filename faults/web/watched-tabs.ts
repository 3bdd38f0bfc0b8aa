import type { APIRequestContext, BrowserContext } from 'playwright-core';
import { median } from '../../bench/support/report.ts';
import type { CuttingProxy } from '../../test/client/core/cutting-proxy.ts';
import type { ServerProcess } from '../../test/support/server-process.ts';
import { WebBrowser } from '../../test/foreign/web/web-browser.ts';
import { queryDatabase } from '../callers/past-the-server.ts';
import type { CleanUp } from '../clean-up.ts';
import { Load } from '../load.ts';
import { textOf } from '../recorder.ts';
import { Tab } from './tab.ts';
import { untilInPage } from './until-in-page.ts';
import { judgeViews, ShownMessages, type StoredMessage } from './view-verdict.ts';

const TABS = 3;
const NICK = 'reader';
/** The number of callers that post into the conversation of the tabs, and the pause of each after an answer. */
const LOAD = { clients: 2, gapMs: 100 };

/** A server, and the proxy through which browsers reach it. The server's `http.base-uri` is the proxy's address. */
export interface ReachedServer {
  readonly server: ServerProcess;
  readonly proxy: CuttingProxy;
}

/** Three tabs of one account in one browser. All show the conversation that callers post into, and write into it. */
export class WatchedTabs {
  readonly tabs: readonly Tab[];
  readonly profile: BrowserContext;
  readonly server: ServerProcess;
  readonly proxy: CuttingProxy;
  readonly #conversation: number;
  readonly #load: Load;
  readonly #shown = Array.from({ length: TABS }, () => new ShownMessages());
  /** By tab: the walks have covered all messages up to this seq. */
  readonly #walkedTo = Array.from({ length: TABS }, () => 0);
  readonly #followedAfterMs: number[] = [];
  #stored: readonly StoredMessage[] = [];

  private constructor(
    { server, proxy }: ReachedServer,
    parts: { profile: BrowserContext; tabs: readonly Tab[]; conversation: number; load: Load },
  ) {
    this.server = server;
    this.proxy = proxy;
    this.profile = parts.profile;
    this.tabs = parts.tabs;
    this.#conversation = parts.conversation;
    this.#load = parts.load;
  }

  /** Resolves when all tabs are open, and callers and tabs have begun to write. */
  static async open(reached: ReachedServer, cleanUp: CleanUp): Promise<WatchedTabs> {
    const { server, proxy } = reached;
    const browser = await WebBrowser.start({ endsOnSignals: false });
    await cleanUp.add('browser', () => browser.stop());
    const profile = await browser.newProfile();
    const origin = `http://127.0.0.1:${proxy.port}`;
    await server.operate('accounts.create', { nick: NICK, name: NICK });
    await signIn(server, profile.request, origin);
    const shownGroup = await createGroupWithReader(server, 'Shown');
    const tabs: Tab[] = [];
    for (let number = 0; number < TABS; number += 1) {
      const draftGroup = await createGroupWithReader(server, `Draft ${number}`);
      const tab = new Tab({ number, profile, origin, conversation: shownGroup.id, draftConversation: draftGroup.id });
      tabs.push(tab);
      await tab.writeDraft();
      await tab.open();
    }
    const load = new Load([{ id: shownGroup.id, webhooks: [shownGroup.webhook] }], LOAD);
    await cleanUp.add('load of the tabs', () => load.abort());
    load.start();
    for (const tab of tabs) tab.startWriting();
    return new WatchedTabs(reached, { profile, tabs, conversation: shownGroup.id, load });
  }

  /**
   * Resolves when each tab shows a message that was posted after this call. Call it when the server can be reached
   * again.
   */
  async followAgain(): Promise<void> {
    const started = performance.now();
    const head = this.#load.heads()[0]!;
    await Promise.all(
      this.tabs.map((tab, number) =>
        untilInPage(`tab ${number} shows what is posted`, async () => (await tab.newest()) > head),
      ),
    );
    this.#followedAfterMs.push(performance.now() - started);
  }

  /**
   * Scrolls through the messages since the last walk in each tab, and records those in view. Nobody posts or sends
   * meanwhile, so a slow machine walks through no more than a fast one.
   */
  async walk(): Promise<void> {
    this.#load.pause();
    await Promise.all(this.tabs.map((tab) => tab.stopWriting()));
    // A text that is stored while the tab is scrolled up leaves the view: its row is at the end, and so is not drawn.
    await Promise.all(this.tabs.map((_tab, number) => this.#nothingWaits(number)));
    await Promise.all(this.tabs.map((tab, number) => this.#walkOne(tab, number)));
    this.#load.resume();
    for (const tab of this.tabs) tab.startWriting();
  }

  /** Ends posting and writing. Resolves when each tab has shown all messages and has found its draft. */
  async settle(): Promise<void> {
    await Promise.all(this.tabs.map((tab) => tab.stopWriting()));
    await this.#load.stop();
    await Promise.all(this.tabs.map((_tab, number) => this.#nothingWaits(number)));
    this.#stored = await this.#readStoredMessages();
    const head = this.#stored.at(-1)!.seq;
    await Promise.all(this.tabs.map((tab, number) => this.#settleOne(tab, number, head)));
    // At its next start the browser sends each stored text: so none may be stored that was sent.
    await untilInPage(
      'the browser keeps no text that was sent',
      async () => (await this.tabs[0]!.keptTexts()).length === 0,
    );
  }

  /** The violations, in words. Call it after `settle`. */
  violations(): string[] {
    const textBySeq = new Map(this.#stored.map(({ seq, text }) => [seq, text]));
    const lost = [...this.#load.acknowledged[0]!].filter(([post, seq]) => textBySeq.get(seq) !== textOf(post)).length;
    return [
      ...(lost > 0 ? [`${lost} posts that were answered are not stored`] : []),
      ...judgeViews({ stored: this.#stored, shown: this.#shown, sent: this.tabs.map(({ sent }) => sent) }),
      ...this.tabs.flatMap(({ violations }) => [...violations]),
    ];
  }

  /** Numbers of this run, as a remark for the row of the report. */
  remark(): string {
    const sent = this.tabs.reduce((sum, tab) => sum + tab.sent.length, 0);
    const hidden = this.tabs.reduce((sum, tab) => sum + tab.hiddenTexts, 0);
    const times = this.#followedAfterMs;
    if (times.length === 0) return '';
    return (
      `${TABS} tabs were to show each of ${this.#stored.length} messages, ${sent} of them written in the tabs, ` +
      `once and in order. The slowest tab showed a new message ${seconds(median(times))} s (median; worst ` +
      `${seconds(Math.max(0, ...times))} s) after the server could be reached again; ${hidden} own texts were out of view for a moment`
    );
  }

  async #walkOne(tab: Tab, number: number): Promise<void> {
    await this.#nothingWaits(number);
    const shown = await tab.walkTo(this.#walkedTo[number]! + 1);
    this.#shown[number]!.note(shown);
    this.#walkedTo[number] = shown.reduce((newest, [seq]) => Math.max(newest, seq), this.#walkedTo[number]!);
  }

  async #settleOne(tab: Tab, number: number, head: number): Promise<void> {
    await untilInPage(`tab ${number} shows the newest message`, async () => (await tab.newest()) === head);
    await this.#walkOne(tab, number);
    for (const problem of await tab.shownProblems()) tab.violations.add(`tab ${number} says afterwards: ${problem}`);
    await tab.collect();
    await tab.findDraft();
  }

  #nothingWaits(number: number): Promise<void> {
    return untilInPage(
      `tab ${number} has sent all texts`,
      async () => (await this.tabs[number]!.waiting()).length === 0,
    );
  }

  #readStoredMessages(): Promise<StoredMessage[]> {
    return queryDatabase(
      this.server,
      (sql) => sql<StoredMessage[]>`
        select seq::int as seq, text from message where conversation_id = ${this.#conversation} order by seq`,
    );
  }
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(2);
}

async function createGroupWithReader(server: ServerProcess, title: string): Promise<{ id: number; webhook: string }> {
  const group = await server.createGroup(title);
  await server.operate('groups.add-member', { group: group.id, user: NICK });
  return group;
}

/** Signs in with the request that the page makes, without the screens of the page. */
async function signIn(server: ServerProcess, request: APIRequestContext, origin: string): Promise<void> {
  const { link } = await server.operate<{ link: string }>('accounts.invite', { user: NICK });
  const answer = await request.post(`${origin}/v1/session`, {
    headers: { origin },
    data: { link: link.split('#')[1]! },
  });
  if (!answer.ok()) throw new Error(`the browser could not sign in: ${answer.status()}`);
}
