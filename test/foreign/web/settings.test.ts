import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

let server: TestServer;
let browser: WebBrowser;
beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

test('a person changes their name and nick, and ends the session of another browser', async () => {
  const { id } = await server.createGroup('Lobby');
  for (const nick of ['alice', 'bob']) {
    await server.operate('accounts.create', { nick, name: nick });
    await server.operate('groups.add-member', { group: id, user: nick });
  }
  const other = await openAs(server, await browser.newProfile(), 'alice', `/c/${id}`);
  const { page, complaints } = await openAs(server, await browser.newProfile(), 'alice', `/c/${id}`);
  await page.getByRole('button', { name: 'Settings' }).click();
  const panel = page.getByRole('dialog');
  await panel.getByLabel('Nick').fill('bob');
  await panel.getByRole('button', { name: 'Save' }).click();
  await panel.getByRole('alert').waitFor();
  // The browser reports the refused request.
  (complaints as string[]).splice(0);
  await panel.getByLabel('Name').fill('Alice <b>');
  await panel.getByLabel('Nick').fill('alice2');
  await panel.getByRole('button', { name: 'Save' }).click();
  await panel.getByText('Saved.').waitFor();
  // On the other browser, too.
  for (const each of [page, other.page]) await each.getByText('Signed in as Alice <b> (@alice2)').waitFor();

  await panel.getByText('this browser').waitFor();
  await panel.getByRole('button', { name: 'End it' }).click();
  await panel.getByRole('group', { name: 'End it' }).getByRole('button', { name: 'End it' }).click();
  await other.page.getByText('Your session has ended').waitFor();
  await panel.getByRole('button', { name: 'End it' }).waitFor({ state: 'detached' });
  expect(await panel.getByRole('button', { name: 'End all others' }).count()).toBe(0);
  expect(complaints).toEqual([]);
});
