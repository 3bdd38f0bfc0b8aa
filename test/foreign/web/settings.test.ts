import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { BrowserContext, BrowserContextOptions, Locator, Page, WebSocketRoute } from 'playwright-core';
import { callAs } from '../../support/call.ts';
import { newSubscription, newWebPush } from '../../support/devices.ts';
import { eventually } from '../../support/eventually.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import type { TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

const PHONE = { viewport: { width: 360, height: 800 } };

let server: TestServer;
let browser: WebBrowser;
let group: number;
const profiles: BrowserContext[] = [];
const complaints: string[][] = [];

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers({ webPush: newWebPush() });
  group = (await server.createGroup('Lobby')).id;
});
afterEach(async () => {
  for (const profile of profiles.splice(0)) await profile.close();
  expect(complaints.splice(0).flat()).toEqual([]);
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

/** Somebody in the group, with a session of their own beside those of browsers. */
async function newPerson(nick: string): Promise<TestPerson> {
  const person = await createPerson(server, nick);
  await server.operate('groups.add-member', { group, user: nick });
  return person;
}

/** A page of somebody that shows the group, then a part of the settings. */
async function open(nick: string, part: string | null, options: BrowserContextOptions = {}): Promise<Page> {
  const profile = await browser.newProfile(options);
  profiles.push(profile);
  const watched = await openAs(server, profile, nick, `/c/${group}`);
  complaints.push(watched.complaints as string[]);
  if (part !== null) await watched.page.goto(`${server.url}/settings/${part}`);
  return watched.page;
}

/** What the browser reports of requests that a test lets fail. */
const forgive = (): void => complaints.forEach((each) => each.splice(0));
const panelOf = (page: Page): Locator => page.getByRole('dialog');
const itemOf = (panel: Locator, text: string): Locator => panel.getByRole('listitem').filter({ hasText: text });

async function confirm(within: Locator, label: string): Promise<void> {
  await within.getByRole('button', { name: label }).click();
  await within.getByRole('group', { name: label }).getByRole('button', { name: label }).click();
}

test('a person changes their name and nick', async () => {
  await newPerson('bob');
  const person = await newPerson('alice');
  const [page, other] = [await open('alice', null), await open('alice', null)];
  await page.getByRole('button', { name: 'Settings' }).click();
  const panel = panelOf(page);
  await panel.getByLabel('Nick').fill('bob');
  await panel.getByRole('button', { name: 'Save' }).click();
  await panel.getByRole('alert').waitFor();
  forgive();
  await panel.getByLabel('Name').fill('Alice <b>');
  await panel.getByLabel('Nick').fill('alice2');
  await panel.getByRole('button', { name: 'Save' }).click();
  await panel.getByText('Saved.').waitFor();
  // On the other browser, too.
  for (const each of [page, other]) await each.getByText('Signed in as Alice <b> (@alice2)').waitFor();
  expect(await callAs(server, person, 'profile.show')).toMatchObject({ name: 'Alice <b>', nick: 'alice2' });
});

test('a person ends the session of another browser, and then all others', async () => {
  const person = await newPerson('carol');
  const other = await open('carol', null);
  const page = await open('carol', 'sessions');
  const panel = panelOf(page);
  await panel.getByText('this browser').waitFor();
  await itemOf(panel, 'this browser').getByText(/ends /).waitFor();
  expect(await panel.getByRole('button', { name: 'End it' }).count()).toBe(2);
  const { sessions } = await callAs(server, person, 'sessions.list');
  await confirm(panel.locator('.settings-list > li').nth(1), 'End it');
  await other.getByText('Your session has ended').waitFor();
  await eventually(
    () => panel.getByRole('button', { name: 'End it' }).count(),
    (count) => count === 1,
  );
  const left = await callAs(server, person, 'sessions.list');
  expect(left.sessions.map(({ id }: { id: number }) => id)).toEqual([sessions[0].id, sessions[2].id]);
  await confirm(panel, 'End all others');
  await panel.getByRole('button', { name: 'End it' }).waitFor({ state: 'detached' });
  await expect(callAs(server, person, 'profile.show')).rejects.toMatchObject({ code: 'unauthenticated' });
  // The other browser reports the requests that were refused.
  forgive();
});
