import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { Receiver } from '../../support/receiver.ts';
import { postJson, type TestServer } from '../../support/server.ts';
import { axeFindings } from './accessibility/axe.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

let server: TestServer;
let browser: WebBrowser;
let profile: BrowserContext;
let page: Page;
let complaints: readonly string[];
let receiver: Receiver;
let group: number;

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers({ delivery: { retryDelaysMs: [600_000] } });
  await server.operate('accounts.create', { nick: 'root', name: 'Root', admin: true });
  await server.operate('accounts.create', { nick: 'bob', name: 'Bob' });
  const created = await server.createGroup('Operations');
  group = created.id;
  for (const user of ['root', 'bob']) await server.operate('groups.add-member', { group, user });
  receiver = await Receiver.start(() => 503);
  await postJson(`${created.webhook}/reverse`, { url: receiver.url('/hook?key=hidden') });
  await postJson(created.webhook, { text: 'secret words' });
  await receiver.received(1);
  profile = await browser.newProfile();
  ({ page, complaints } = await openAs(server, profile, 'root', `/c/${group}`));
});
beforeEach(async () => {
  await page.goto(`${server.url}/c/${group}`);
  await page.getByRole('button', { name: 'Settings' }).click();
});
afterAll(async () => {
  expect(complaints).toEqual([]);
  await profile.close();
  await browser.stop();
  await server.stop();
  await receiver.stop();
});

test('the administrator sees whether the server works, its database, and which hooks fail, without a word of anybody', async () => {
  await page.getByRole('link', { name: 'Server', exact: true }).click();
  const panel = page.getByRole('dialog');
  await panel.getByText('The server works, and the database answers.').waitFor();
  await panel.getByText(/^PostgreSQL \d+/).waitFor();
  await panel.getByText(/Hook 1 of group 1 \(127\.0\.0\.1:\d+\): the target answered 503/).waitFor();
  const text = await panel.innerText();
  expect(text).not.toMatch(/hidden|secret words/);
  expect(await axeFindings(page, 'all')).toEqual([]);
});

test('the administrator creates an account, lets the person in by a link, and deactivates the account', async () => {
  await page.getByRole('link', { name: 'People', exact: true }).click();
  const panel = page.getByRole('dialog');
  await panel.getByLabel('Nick, by which others mention the person').fill('carol');
  await panel.getByLabel('Name (optional)').fill('Carol');
  await panel.getByRole('button', { name: 'Create an account' }).click();
  await panel.getByRole('button', { name: 'Sign-in link for @carol' }).click();
  const link = await panel.getByRole('textbox', { name: 'Secret of Sign-in link for @carol' }).inputValue();
  await panel.getByRole('img', { name: 'Sign-in link for @carol' }).waitFor();
  expect(await axeFindings(page, 'all')).toEqual([]);

  const other = await browser.newProfile();
  const watched = await WebBrowser.watch(other);
  await watched.page.goto(link);
  await watched.page.getByRole('button', { name: 'Sign in' }).click();
  await watched.page.getByText('(@carol)').waitFor();
  await panel.getByRole('button', { name: 'Done' }).click();

  const item = panel.getByRole('listitem').filter({ hasText: '(@carol)' });
  await item.getByRole('button', { name: 'Deactivate' }).click();
  await item.getByText('@carol is signed out everywhere at once').waitFor();
  await item.getByRole('group').getByRole('button', { name: 'Deactivate' }).click();
  await item.getByText('deactivated').waitFor();
  await watched.page.getByText('(@carol)').waitFor({ state: 'detached' });
  await other.close();
});

test('a person who is no administrator sees neither part', async () => {
  const other = await browser.newProfile();
  const watched = await openAs(server, other, 'bob', `/c/${group}`);
  await watched.page.getByRole('button', { name: 'Settings' }).click();
  await watched.page.getByRole('link', { name: 'Keyboard shortcuts' }).waitFor();
  expect(await watched.page.getByRole('link', { name: 'Server', exact: true }).count()).toBe(0);
  expect(await watched.page.getByRole('link', { name: 'People', exact: true }).count()).toBe(0);
  for (const part of ['server', 'people']) {
    await watched.page.goto(`${server.url}/settings/${part}`);
    await watched.page.getByRole('alert').getByText('administrator').waitFor();
  }
  await other.close();
});
