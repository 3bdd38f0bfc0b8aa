import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { postJson, type TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser, type WatchedPage } from './web-browser.ts';

let server: TestServer;
let browser: WebBrowser;
let watched: WatchedPage | null = null;

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
  for (const nick of ['alice', 'bob', 'carol']) await server.operate('accounts.create', { nick, name: nick });
});
afterEach(() => expect(watched?.complaints).toEqual([]));
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

const notices = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>('[...document.querySelectorAll(".notice")].map(({ firstChild }) => firstChild.data.trim())');

test('notices stay at their place when one opens another conversation and comes back', async () => {
  const group = await server.createGroup('Shown');
  const other = await server.createGroup('Other');
  for (const { id } of [group, other]) await server.operate('groups.add-member', { group: id, user: 'alice' });
  watched = await openAs(server, await browser.newProfile(), 'alice', `/c/${group.id}`);
  const { page } = watched;
  const first = ['the administrator created the group "Shown"', 'the administrator added alice'];
  await page.getByText('the administrator added alice').waitFor();
  expect(await notices(page)).toEqual(first);

  await postJson(group.webhook, { text: 'first message' });
  await page.getByRole('article').getByText('first message').waitFor();
  await server.operate('groups.add-member', { group: group.id, user: 'bob' });
  await page.getByText('the administrator added bob').waitFor();
  expect(await notices(page)).toEqual([...first, 'the administrator added bob']);

  const openGroup = (title: string): Promise<void> => page.getByRole('link', { name: title }).click();
  await openGroup('Other');
  await page.getByText('the administrator created the group "Other"').waitFor();
  // A notice of a conversation that is not open.
  await server.operate('groups.add-member', { group: group.id, user: 'carol' });
  await openGroup('Shown');
  await page.getByText('the administrator added carol').waitFor();
  expect(await notices(page)).toEqual([...first, 'the administrator added bob', 'the administrator added carol']);
});
