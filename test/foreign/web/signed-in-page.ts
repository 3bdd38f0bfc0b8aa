import type { BrowserContext } from 'playwright-core';
import type { TestServer } from '../../support/server.ts';
import { WebBrowser, type WatchedPage } from './web-browser.ts';

/** Signs an account in; resolves with a page at a path that shows a conversation. */
export async function openAs(
  server: TestServer,
  profile: BrowserContext,
  nick: string,
  path: string,
): Promise<WatchedPage> {
  const watched = await WebBrowser.watch(profile);
  const { link } = await server.operate<{ link: string }>('accounts.invite', { user: nick });
  await watched.page.goto(`${server.url}/#${link.split('#')[1]!}`);
  await watched.page.getByText(`(@${nick})`).waitFor();
  await watched.page.goto(`${server.url}${path}`);
  await watched.page.getByRole('textbox').waitFor();
  return watched;
}
