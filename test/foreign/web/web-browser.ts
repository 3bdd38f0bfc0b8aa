import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';
import { HANG_MS } from '../../support/eventually.ts';
import { freePort } from '../../support/ports.ts';
import type { ConfigChanges } from '../../support/config.ts';
import { TestServer } from '../../support/server.ts';

/** The path of Debian's Chromium: playwright-core contains no browser. */
export const CHROMIUM = '/usr/bin/chromium';

/** A host name that the tests' browsers resolve to this machine, but do not count as loopback. */
export const FAR_HOST = 'chat.test';

/** Starts a server whose base-uri is the address that browsers open. */
export async function startServerForBrowsers(changes: ConfigChanges = {}, host = '127.0.0.1'): Promise<TestServer> {
  const port = await freePort();
  const http = { port, baseUri: `http://${host}:${port}`, ...changes.http };
  return TestServer.start({ projectName: 'Klatch of a test', ...changes, http });
}

/** A page, and the complaints of its browser. */
export interface WatchedPage {
  readonly page: Page;
  /** Violations of the Content-Security-Policy, errors of scripts, and errors in the console. */
  readonly complaints: readonly string[];
}

/**
 * A script as text that logs violations of the Content-Security-Policy: scripts of pages have other types than those of
 * Node.
 */
const REPORT_VIOLATIONS =
  'document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => ' +
  'console.error(`CSP: ${violatedDirective} ${blockedURI}`))';

/** A real Chromium. */
export class WebBrowser {
  readonly #browser: Browser;

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  /** `endsOnSignals: false`: Ctrl-C ends neither the browser nor this process. */
  static async start({ endsOnSignals = true } = {}): Promise<WebBrowser> {
    // Chromium refuses to run as root with its sandbox.
    const args = ['--no-sandbox', `--host-resolver-rules=MAP ${FAR_HOST} 127.0.0.1`];
    const signals = { handleSIGINT: endsOnSignals, handleSIGTERM: endsOnSignals, handleSIGHUP: endsOnSignals };
    return new WebBrowser(await chromium.launch({ executablePath: CHROMIUM, args, ...signals }));
  }

  /** Makes a new browser profile, without cookies and storage. */
  newProfile(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    return this.#browser.newContext(options);
  }

  /** Opens a page in a profile, and records its complaints from its beginning on. */
  static async watch(profile: BrowserContext): Promise<WatchedPage> {
    const page = await profile.newPage();
    page.setDefaultTimeout(HANG_MS);
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    await page.addInitScript(REPORT_VIOLATIONS);
    return { page, complaints };
  }

  async stop(): Promise<void> {
    await this.#browser.close();
  }
}
