import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { requireTools } from '../../scripts/package/tools.ts';
import { buildWeb } from '../../scripts/package/web.ts';
import { callAs } from '../../test/support/call.ts';
import { ServerProcess } from '../../test/support/server-process.ts';
import { WebBrowser } from '../../test/foreign/web/web-browser.ts';
import { SETTINGS } from '../intake.ts';
import { createUsers, nickOf } from '../seed-users.ts';
import { addProbe, startTimes, type Condition } from './page-probe.ts';
import { fillConversation, messageText, newestShown, newestTexts, type BenchConversation } from './seed.ts';
import { within } from './within.ts';

/** The number of people: the person at the browser, and seven others who write too. */
const PEOPLE = 8;
const START_S = 120;
export const VIEW = { width: 1_280, height: 800 };

/** Cookies and storage of a browser in which a person is signed in. */
export type SignedIn = NonNullable<Exclude<BrowserContextOptions['storageState'], string>>;

/** A server with accounts of people, and a browser. */
export class WebStage {
  readonly server: ServerProcess;
  readonly browser: WebBrowser;
  /** The tokens of sessions; the first one is that of the person at the browser. */
  readonly tokens: readonly string[];
  readonly accounts: readonly number[];
  readonly #nicks: readonly string[];
  readonly signedIn: SignedIn;

  private constructor(
    parts: { server: ServerProcess; browser: WebBrowser; signedIn: SignedIn },
    people: { tokens: readonly string[]; accounts: readonly number[]; nicks: readonly string[] },
  ) {
    this.server = parts.server;
    this.browser = parts.browser;
    this.signedIn = parts.signedIn;
    this.tokens = people.tokens;
    this.accounts = people.accounts;
    this.#nicks = people.nicks;
  }

  static async start(): Promise<WebStage> {
    requireTools(['chromium'], { startsDaemons: false });
    await buildWeb();
    const server = await ServerProcess.create(SETTINGS);
    try {
      await server.start();
      const { id } = await server.createGroup('Lobby');
      const tokens = await createUsers(server, id, PEOPLE);
      const nicks = tokens.map((_, n) => nickOf(id, n));
      const accounts: number[] = [];
      for (const token of tokens) {
        const { id } = await callAs<{ id: number }>(server, { token }, 'profile.show');
        accounts.push(id);
      }
      const signedIn = await signIn(server, nicks[0]!);
      const browser = await WebBrowser.start();
      return new WebStage({ server, browser, signedIn }, { tokens, accounts, nicks });
    } catch (error) {
      await server.discard();
      throw error;
    }
  }

  /** Creates a group of all people. The person at the browser has read all its messages. */
  async conversation(title: string, messages: number): Promise<BenchConversation> {
    const { id, webhook } = await this.server.createGroup(title);
    for (const user of this.#nicks) await this.server.operate('groups.add-member', { group: id, user });
    await fillConversation(this.server, { id, title }, this.accounts.slice(1), messages);
    await this.call('messages.mark-read', { conversation: id, seq: messages });
    return { id, title, webhook, messages, newestTexts: newestTexts((n) => messageText(title, n), messages) };
  }

  /** Calls an operation as the person at the browser, or as another person. */
  call<Output>(operation: string, input: object, person = 0): Promise<Output> {
    return callAs<Output>(this.server, { token: this.tokens[person]! }, operation, input);
  }

  /** Klatch's page meets these conditions when a conversation is open at its end. */
  conditionsOf(conversation: BenchConversation): Condition[] {
    return [...newestShown('.feed article .text', conversation), { present: 'textarea:not([disabled])' }];
  }

  /** A browser in which the person is signed in, with nothing cached. */
  newProfile(): Promise<BrowserContext> {
    return this.browser.newProfile({ viewport: VIEW, storageState: this.signedIn });
  }

  /** Opens a page that shows the end of a conversation, in a profile of its own. */
  async openAtEnd(conversation: BenchConversation): Promise<Page> {
    const page = await (await this.newProfile()).newPage();
    await addProbe(page, this.conditionsOf(conversation));
    await page.goto(`${this.server.url}/c/${conversation.id}`);
    await within(START_S, `the page of ${conversation.title}`, startTimes(page));
    return page;
  }

  async browserVersion(): Promise<string> {
    const profile = await this.browser.newProfile();
    const version = profile.browser()!.version();
    await profile.close();
    return version;
  }

  async stop(): Promise<void> {
    await this.browser.stop();
    await this.server.remove();
  }
}

/** Signs in with the request that a page would send. */
async function signIn(server: ServerProcess, nick: string): Promise<SignedIn> {
  const { link } = await server.operate<{ link: string }>('accounts.invite', { user: nick });
  const response = await fetch(`${server.url}/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: server.url },
    body: JSON.stringify({ link }),
  });
  const pair = /^([^=]+)=([^;]*)/.exec(response.headers.get('set-cookie') ?? '');
  if (pair === null) throw new Error(`the sign-in was answered ${response.status}`);
  const [, name, value] = pair;
  const cookie = { name: name!, value: value!, domain: '127.0.0.1', path: '/', expires: -1 };
  return { cookies: [{ ...cookie, httpOnly: true, secure: false, sameSite: 'Strict' }], origins: [] };
}
