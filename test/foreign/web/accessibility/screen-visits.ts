import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { LiveClient } from '../../../live/client.ts';
import { newWebPush } from '../../../support/devices.ts';
import { TestMailServer } from '../../../support/mail-server.ts';
import type { TestServer } from '../../../support/server.ts';
import { NEWCOMER, VIEWER, writeSampleContent, type SampleContent } from './sample-content.ts';
import { startServerForBrowsers, WebBrowser } from '../web-browser.ts';

type Width = 'narrow' | 'wide';
/** Pages in CSS pixels. */
export const SIZES: Readonly<Record<Width, { readonly width: number; readonly height: number }>> = {
  narrow: { width: 360, height: 800 },
  wide: { width: 1280, height: 800 },
};
const WIDTHS: readonly Width[] = ['wide', 'narrow'];

/** What a browser says of requests that a screen lets fail, and of a page on plain http beyond loopback. */
const EXPECTED_COMPLAINT = /^Failed to load resource|WebSocket connection to|Cross-Origin-Opener-Policy header/;

/** A page that a screen opens in, and what there is to show. */
export interface Visit {
  readonly page: Page;
  readonly server: TestServer;
  readonly content: SampleContent;
  /** It takes the codes that the server sends. */
  readonly mail: TestMailServer;
}

/** A screen of the browser client, or a state of one. */
export interface Screen {
  /** Of its test: lower case with hyphens. */
  readonly name: string;
  /** Who is signed in; nobody where it is null. The viewer where it is not there. */
  readonly account?: string | null;
  /** Where the screen is another one in the other width. */
  readonly width?: Width;
  /** From a new page to the screen; resolves when all of it is shown. */
  readonly open: (visit: Visit) => Promise<void>;
}

interface VisitOptions {
  readonly size: { readonly width: number; readonly height: number };
}

/** Many screens ask for a code from the same network. */
const LIMITS = { codesPerSourcePerHour: 1_000, dailyCodesPerAddressAndNetwork: 1_000, codesPerHourPerBudget: 1_000 };

/** What all screens share. */
interface Place extends Omit<Visit, 'page'> {
  readonly browser: WebBrowser;
  /** The cookies of those who are signed in. */
  readonly sessions: ReadonlyMap<string, BrowserContextOptions['storageState']>;
  /** The peer of the private conversation is online. */
  readonly peer: LiveClient;
}

/** A server with the sample content, and a browser that opens each screen in a profile of its own. */
export class ScreenVisits {
  readonly #place: Place;

  private constructor(place: Place) {
    this.#place = place;
  }

  static async start(): Promise<ScreenVisits> {
    const browser = await WebBrowser.start();
    const mail = await TestMailServer.start();
    const server = await startServerForBrowsers({
      projectName: 'Klatch',
      registration: 'invite',
      smtp: mail.config(),
      webPush: newWebPush(),
      limits: LIMITS,
    });
    const content = await writeSampleContent(server, browser);
    const sessions = new Map<string, BrowserContextOptions['storageState']>();
    for (const nick of [VIEWER, NEWCOMER]) sessions.set(nick, await signIn(server, browser, nick));
    const peer = await LiveClient.signIn(server.liveUrl, content.peerToken);
    return new ScreenVisits({ browser, mail, server, content, sessions, peer });
  }

  /**
   * Opens a screen, lets `look` see it, and closes its page with all that the browser kept. Rejects where the page broke
   * its Content-Security-Policy or threw.
   */
  async visit<Seen>(screen: Screen, options: VisitOptions, look: (page: Page) => Promise<Seen>): Promise<Seen> {
    const account = screen.account === undefined ? VIEWER : screen.account;
    const { browser, sessions, ...shared } = this.#place;
    const profile = await browser.newProfile({
      viewport: options.size,
      ...(account === null ? {} : { storageState: sessions.get(account)! }),
    });
    try {
      const { page, complaints } = await WebBrowser.watch(profile);
      // All visits find the same messages unread.
      await page.route('**/v1/api/messages.mark-read', (route) => route.fulfill({ json: { read_seq: 0 } }));
      await screen.open({ ...shared, page });
      const seen = await look(page);
      const unexpected = complaints.filter((complaint) => !EXPECTED_COMPLAINT.test(complaint));
      if (unexpected.length > 0) throw new Error(`${screen.name}: ${unexpected.join('\n')}`);
      return seen;
    } finally {
      await profile.close();
    }
  }

  async stop(): Promise<void> {
    const { browser, mail, server, peer } = this.#place;
    await browser.stop();
    peer.socket.destroy();
    await server.stop();
    await mail.stop();
  }
}

/** The sizes that a screen is looked at in. */
export function widthsOf({ width }: Screen): readonly Width[] {
  return width === undefined ? WIDTHS : [width];
}

async function signIn(
  server: TestServer,
  browser: WebBrowser,
  nick: string,
): Promise<BrowserContextOptions['storageState']> {
  const profile: BrowserContext = await browser.newProfile();
  try {
    const { page } = await WebBrowser.watch(profile);
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: nick });
    await page.goto(`${server.url}/#${link.split('#')[1]!}`);
    await page.getByText(`(@${nick})`).waitFor();
    return await profile.storageState();
  } finally {
    await profile.close();
  }
}
