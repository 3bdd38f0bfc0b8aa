import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { LiveClient } from '../../../live/client.ts';
import { newWebPush } from '../../../support/devices.ts';
import { TestMailServer } from '../../../support/mail-server.ts';
import type { TestServer } from '../../../support/server.ts';
import { NEWCOMER, VIEWER, writeSampleContent, type SampleContent } from './sample-content.ts';
import { startServerForBrowsers, WebBrowser } from '../web-browser.ts';

type Width = 'narrow' | 'wide';
/** The sizes of pages in CSS pixels. */
export const SIZES: Readonly<Record<Width, { readonly width: number; readonly height: number }>> = {
  narrow: { width: 360, height: 800 },
  wide: { width: 1280, height: 800 },
};
const WIDTHS: readonly Width[] = ['wide', 'narrow'];

/**
 * Complaints of a browser that are expected: about requests that a screen lets fail, and about a page on plain http
 * beyond loopback.
 */
const EXPECTED_COMPLAINT = /^Failed to load resource|WebSocket connection to|Cross-Origin-Opener-Policy header/;

/** A page for a screen, with the server and the content that it shows. */
export interface Visit {
  readonly page: Page;
  readonly server: TestServer;
  readonly content: SampleContent;
  /** Receives the e-mail with the codes that the server sends. */
  readonly mail: TestMailServer;
}

/** A screen of the browser client, or a state of one. */
export interface Screen {
  /** The name of its test, in lower case with hyphens. */
  readonly name: string;
  /** The nick of the account that is signed in; null: nobody is signed in; absent: `VIEWER` is. */
  readonly account?: string | null;
  /** The only width in which to open the screen; absent: both widths. */
  readonly width?: Width;
  /** Leads a new page to the screen; resolves when all of it is shown. */
  readonly open: (visit: Visit) => Promise<void>;
}

interface VisitOptions {
  readonly size: { readonly width: number; readonly height: number };
}

/** Limits that allow many codes for one network: some screens request a code, at each width for another address. */
const LIMITS = { codesPerSourcePerHour: 1_000, dailyCodesPerAddressAndNetwork: 1_000, codesPerHourPerBudget: 1_000 };

/** The server, the browser and the sessions that all screens share. */
interface Place extends Omit<Visit, 'page'> {
  readonly browser: WebBrowser;
  /** The cookies of the accounts that are signed in, by nick. */
  readonly sessions: ReadonlyMap<string, BrowserContextOptions['storageState']>;
  /** A connection that keeps the peer of the private conversation online. */
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
   * Opens a screen, calls `look` with its page, and closes the page with all that the browser kept. Rejects if the page
   * broke its Content-Security-Policy or threw.
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
      // The server does not get this request, so that all visits find the same messages unread.
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

/** The widths in which a screen is opened. */
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
