import type { Page } from 'playwright-core';
import type { SampleConversation } from './sample-content.ts';
import type { Visit } from './screen-visits.ts';

/** Opens a conversation; resolves when the page shows its messages, or says that there are none. */
export async function openConversation(
  { page, server, content }: Visit,
  conversation: SampleConversation,
): Promise<void> {
  await page.goto(`${server.url}/c/${content[conversation]}`);
  await page.locator('article, .timeline > .centred').first().waitFor();
}

/** Goes back to the list of conversations, if the page has no room for it beside the open one. */
export async function showList(page: Page): Promise<void> {
  const back = page.getByRole('button', { name: 'All conversations' });
  if (await back.isVisible()) await back.click();
}

/** Answers the page's requests to `url` with 503, as a server that is not available does. */
export async function refuse(page: Page, url: string, message: string): Promise<void> {
  await page.route(url, (route) =>
    route.fulfill({ status: 503, json: { status: 'failure', code: 'overloaded', message } }),
  );
}
