import { HANG_MS } from '../../support/eventually.ts';
import { WebBrowser } from '../../foreign/web/web-browser.ts';
import { post } from './conversation.ts';

/**
 * Opens in Chromium the link that `klatch admin-link --json` printed in a new installation. Expects to see the first
 * group at once, with the cursor in the composer. A post to the printed webhook has to appear there.
 */
export async function openFirstPage(adminLinkJson: string): Promise<void> {
  const { link, group } = JSON.parse(adminLinkJson) as { link: string; group: { webhook: string } | null };
  if (group === null) throw new Error('admin-link made no group: is the installation new?');
  const browser = await WebBrowser.start();
  try {
    const { page, complaints } = await WebBrowser.watch(await browser.newProfile());
    await page.goto(link);
    await page.getByRole('heading', { name: 'Lobby' }).waitFor();
    await page.waitForFunction('document.activeElement.localName === "textarea"', null, { timeout: HANG_MS });
    const answer = await post(group.webhook, { text: 'posted into the Lobby' });
    if (answer.status !== 200) throw new Error(`the post was answered ${answer.status}`);
    await page.getByRole('article').getByText('posted into the Lobby').waitFor();
    if (complaints.length > 0) throw new Error(`the browser complained: ${complaints.join('; ')}`);
  } finally {
    await browser.stop();
  }
}
