import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { postJson, type TestGroup, type TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

let server: TestServer;
let browser: WebBrowser;
let profile: BrowserContext;
let page: Page;
let complaints: readonly string[];
let group: TestGroup;

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
  for (const nick of ['alice', 'bob']) await server.operate('accounts.create', { nick, name: nick });
  group = await server.createGroup('Operations');
  for (const user of ['alice', 'bob']) await server.operate('groups.add-member', { group: group.id, user });
  await server.operate('groups.transfer', { group: group.id, user: 'alice' });
  profile = await browser.newProfile();
  ({ page, complaints } = await openAs(server, profile, 'alice', `/c/${group.id}`));
});
afterAll(async () => {
  await profile.close();
  await browser.stop();
  await server.stop();
});

test('the integration screen shows what to paste, posts a test message, and tells use and refused posts', async () => {
  const post = (token: string, input: object) => postJson(`${server.url}/v1/webhooks/${token}`, input);
  expect((await post(group.token, { text: 7 })).status).toBe(400);
  await page.getByRole('button', { name: 'Details' }).click();
  await page.getByRole('link', { name: 'Integration: programs post here' }).click();

  // The token is covered until it is shown.
  const values = page.locator('.address-values code');
  await values.first().getByText('curl').waitFor();
  expect(await page.locator('.webhooks').innerText()).not.toContain(group.token);
  await page.getByRole('button', { name: 'Show the secret part' }).click();
  await values.first().getByText(`curl -d 'hello' ${server.url}/v1/webhooks/${group.token}`).waitFor();
  await page.getByLabel('Program that posts').selectOption('Slack');
  await values.getByText(group.token).first().waitFor();

  // A test message, its use, and the refused post.
  await page.getByText('No program has posted into this group yet.').waitFor();
  await page.getByRole('button', { name: 'Post a test message to all members' }).click();
  await page.getByText('The server has accepted the message').waitFor();
  await page.getByText(/Last post: .*In the last 24 hours: 1 post\./).waitFor();
  await page
    .locator('.refused-posts li')
    .getByText(/1 post, by/)
    .waitFor();

  // A new address: the question says what stops.
  await page.getByRole('button', { name: 'Replace the address' }).click();
  await page.getByText(/stops working at once, for all programs; 1 post came with them/).waitFor();
  await page.getByRole('group').getByRole('button', { name: 'Replace the address' }).click();
  await values.getByText(group.token).first().waitFor({ state: 'detached' });
  expect((await post(group.token, { text: 'late' })).status).toBe(404);

  // Back leads to the details.
  await page.getByRole('link', { name: '‹ Details of the group' }).click();
  await page.getByRole('heading', { name: 'Notifications' }).waitFor();
  expect(complaints).toEqual([]);
});

test('a member without the role finds no link to webhooks, and their address says that it is not allowed', async () => {
  const member = await browser.newProfile();
  const watched = await openAs(server, member, 'bob', `/c/${group.id}/about`);
  await watched.page.getByRole('heading', { name: 'Notifications' }).waitFor();
  expect(await watched.page.getByRole('link', { name: /programs/ }).count()).toBe(0);
  await watched.page.goto(`${server.url}/c/${group.id}/hooks`);
  await watched.page.getByText('Only owners and admins of the group may do this').waitFor();
  expect(await watched.page.locator('.hook-list li').count()).toBe(0);
  await member.close();
});
