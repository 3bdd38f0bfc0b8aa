import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import type { TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

let server: TestServer;
let browser: WebBrowser;
let alice: TestPerson;
let bob: TestPerson;
let carol: TestPerson;
const profiles: BrowserContext[] = [];
const complaints: string[][] = [];

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
  alice = await createPerson(server, 'alice');
  bob = await createPerson(server, 'bob');
  carol = await createPerson(server, 'carol');
  await callAs(server, bob, 'profile.update', { name: `Bob ${HOSTILE}`, about: `Plumber ${HOSTILE}` });
});
afterEach(async () => {
  for (const profile of profiles.splice(0)) await profile.close();
  expect(complaints.splice(0).flat()).toEqual([]);
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

/** Creates a group of alice with bob and carol, in which bob has written. */
async function newGroup(title: string, text: string): Promise<number> {
  const { id } = await server.createGroup(title);
  for (const user of ['alice', 'bob', 'carol']) await server.operate('groups.add-member', { group: id, user });
  await server.operate('groups.transfer', { group: id, user: 'alice' });
  await callAs(server, bob, 'messages.send', { conversation: id, text });
  return id;
}

async function open(nick: string, group: number): Promise<Page> {
  const profile = await browser.newProfile();
  profiles.push(profile);
  const watched = await openAs(server, profile, nick, `/c/${group}`);
  complaints.push(watched.complaints as string[]);
  return watched.page;
}

const cardOf = (page: Page, name: string) => page.getByRole('dialog', { name });
const focusedText = (page: Page) => page.evaluate<string>('document.activeElement.textContent');
/** Resolves once a person has blocked exactly these people. */
const haveBlocked = (person: TestPerson, expected: readonly string[]) =>
  eventually(
    () => callAs<{ blocked: { nick: string }[] }>(server, person, 'blocks.list'),
    ({ blocked }) => JSON.stringify(blocked.map(({ nick }) => nick)) === JSON.stringify(expected),
  );

test('the name of a sender shows the card of a person, who comes online while somebody looks', async () => {
  const group = await newGroup('Cards', 'good morning');
  const page = await open('alice', group);
  await page
    .getByRole('article')
    .getByRole('button', { name: `Bob ${HOSTILE}` })
    .click();
  const card = cardOf(page, `Bob ${HOSTILE}`);
  await card.getByText('@bob').waitFor();
  await card.getByText(`Plumber ${HOSTILE}`).waitFor();
  await card.getByText(/member of this group · account since/).waitFor();
  await card.getByText('not online').waitFor();
  expect(await page.locator('#app img').count()).toBe(0);
  await open('bob', group);
  await card.getByText('not online').waitFor({ state: 'detached' });
  await card.getByText('online', { exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await card.waitFor({ state: 'detached' });
  await eventually(
    () => focusedText(page),
    (text) => text === `Bob ${HOSTILE}`,
  );
  // The card of the person who looks offers no action.
  await callAs(server, alice, 'messages.send', { conversation: group, text: 'mine' });
  await page.getByRole('article').getByRole('button', { name: 'alice' }).press('Enter');
  await cardOf(page, 'alice').getByText('This is you.').waitFor();
  expect(await cardOf(page, 'alice').getByRole('button').allInnerTexts()).toEqual(['Close']);
});

test('a mention of a member shows the card, from where one writes privately, blocks, and unblocks', async () => {
  const group = await newGroup('Mentions', 'for @carol and @nobody');
  const page = await open('alice', group);
  await page.getByRole('article').getByRole('button', { name: '@nobody' }).click();
  await cardOf(page, '@nobody').getByText('There is no user with the nick nobody').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('article').getByRole('button', { name: '@carol' }).press('Enter');
  const card = cardOf(page, '@carol');
  await card.getByRole('button', { name: 'Write privately' }).click();
  await page.getByRole('heading', { name: 'carol' }).waitFor();
  await page.getByRole('textbox', { name: 'Write to carol' }).waitFor();

  await page.getByRole('button', { name: 'Details' }).click();
  const panel = page.getByRole('dialog', { name: 'carol' });
  await panel.getByText('@carol').waitFor();
  expect(await panel.getByRole('button', { name: 'Write privately' }).count()).toBe(0);
  await panel.getByRole('button', { name: 'Block' }).click();
  await panel.getByText('carol can send you no private messages').waitFor();
  await panel.getByRole('group', { name: 'Block' }).getByRole('button', { name: 'Block' }).click();
  await panel.getByText('You have blocked carol').waitFor();
  await haveBlocked(alice, ['carol']);
  await panel.getByRole('button', { name: 'Unblock' }).click();
  await panel.getByRole('button', { name: 'Block', exact: true }).waitFor();
  await haveBlocked(alice, []);

  // If somebody else has blocked the person, the card says so in a sentence.
  await callAs(server, carol, 'blocks.add', { user: 'bob' });
  const ofBob = await open('bob', group);
  await ofBob.getByRole('article').getByRole('button', { name: '@carol' }).click();
  await cardOf(ofBob, '@carol').getByRole('button', { name: 'Write privately' }).click();
  await cardOf(ofBob, '@carol').getByRole('alert').waitFor();
  for (const each of complaints) each.splice(0);
});

test('a card that cannot be read says why, and is read when the connection is back', async () => {
  const group = await newGroup('Offline', 'good night');
  const profile = await browser.newProfile();
  profiles.push(profile);
  const { page } = await openAs(server, profile, 'alice', `/c/${group}`);
  let isCut = false;
  const sockets = new Set<{ close: () => Promise<void> }>();
  await page.routeWebSocket(/\/v1\/live/, (socket) => {
    if (isCut) void socket.close();
    else {
      socket.connectToServer();
      sockets.add(socket);
    }
  });
  await page.reload();
  const name = page.getByRole('article').getByRole('button', { name: `Bob ${HOSTILE}` });
  await name.waitFor();
  await page.route('**/v1/api/accounts.find', (route) =>
    route.fulfill({ status: 503, json: { status: 'failure', code: 'overloaded', message: 'Too much at once' } }),
  );
  await name.click();
  const card = cardOf(page, `Bob ${HOSTILE}`);
  await card.getByRole('alert').getByText('Too much at once').waitFor();
  await page.unroute('**/v1/api/accounts.find');
  await card.getByRole('button', { name: 'Try again' }).click();
  await card.getByText('@bob').waitFor();
  await page.keyboard.press('Escape');

  isCut = true;
  await page.route('**/v1/api/**', (route) => route.abort());
  for (const socket of sockets) await socket.close();
  await page.getByText('No connection').waitFor();
  await name.click();
  await card.getByRole('alert').getByText('there is no connection to the server').waitFor();
  await page.unroute('**/v1/api/**');
  isCut = false;
  // The page connects again, and the card is read again, both without a click.
  await card.getByText('@bob').waitFor();
});
