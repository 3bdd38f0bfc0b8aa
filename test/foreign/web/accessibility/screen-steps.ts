import type { Page } from 'playwright-core';
import type { SampleConversation } from './sample-content.ts';
import type { Visit } from './screen-visits.ts';

/** Opens a conversation; resolves when its messages are shown, or that it has none. */
export async function openConversation(
  { page, server, content }: Visit,
  conversation: SampleConversation,
): Promise<void> {
  await page.goto(`${server.url}/c/${content[conversation]}`);
  await page.locator('article, .timeline > .centred').first().waitFor();
}

/** Shows the list of conversations where it has no place beside the open one. */
export async function showList(page: Page): Promise<void> {
  const back = page.getByRole('button', { name: 'All conversations' });
  if (await back.isVisible()) await back.click();
}

/** Answers requests as a server does that is not available. */
export async function refuse(page: Page, url: string, message: string): Promise<void> {
  await page.route(url, (route) =>
    route.fulfill({ status: 503, json: { status: 'failure', code: 'overloaded', message } }),
  );
}
