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

/** Creates a member of the group, with a session that no browser uses. */
async function newPerson(nick: string): Promise<TestPerson> {
  const person = await createPerson(server, nick);
  await server.operate('groups.add-member', { group, user: nick });
  return person;
}

/** Opens a page as this account. It shows the group, and then a part of the settings if one is given. */
async function open(nick: string, part: string | null, options: BrowserContextOptions = {}): Promise<Page> {
  const profile = await browser.newProfile(options);
  profiles.push(profile);
  const watched = await openAs(server, profile, nick, `/c/${group}`);
  complaints.push(watched.complaints as string[]);
  if (part !== null) await watched.page.goto(`${server.url}/settings/${part}`);
  return watched.page;
}

/** Drops the complaints about requests that a test lets fail on purpose. */
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
  // The other browser of the person shows the new names too.
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
  // The complaints of the other browser are about the requests that were refused.
  forgive();
});

test('an app password is shown once, acts as its person, and is refused when it was ended', async () => {
  const person = await newPerson('nina');
  const page = await open('nina', 'app-passwords');
  const panel = panelOf(page);
  await panel.getByText('You have no app password').waitFor();
  await panel.getByLabel('Which program will use it').fill('report <script>');
  await panel.getByLabel('Valid for').selectOption('90 days');
  await panel.getByRole('button', { name: 'Create an app password' }).click();
  const token = await panel.getByRole('group', { name: 'Secret of report' }).getByRole('textbox').inputValue();
  expect(await callAs(server, { token }, 'profile.show')).toMatchObject({ id: person.id });
  await panel.getByRole('button', { name: 'Done' }).click();
  const { sessions } = await callAs(server, person, 'sessions.list');
  const created = sessions.find((each: { app_password: boolean }) => each.app_password);
  expect(created).toMatchObject({ label: 'report <script>', current: false });
  expect(Math.round((Date.parse(created.expires_at) - Date.now()) / 86_400_000)).toBe(90);
  await page.reload();
  await itemOf(panel, 'report <script>').waitFor();
  expect(await page.content()).not.toContain(token);
  // This list contains app passwords only: another list has the sessions.
  expect(await panel.getByRole('button', { name: 'End it' }).count()).toBe(1);
  await confirm(itemOf(panel, 'report <script>'), 'End it');
  await panel.getByText('You have no app password').waitFor();
  await expect(callAs(server, { token }, 'profile.show')).rejects.toMatchObject({ code: 'unauthenticated' });
});

test('a device that is notified is listed, and removed', async () => {
  const person = await newPerson('dave');
  const device = { kind: 'web', subscription: newSubscription(), label: 'Old phone <i>' };
  await callAs(server, person, 'devices.register', device);
  const panel = panelOf(await open('dave', 'devices'));
  await confirm(itemOf(panel, 'Old phone <i>'), 'Remove');
  await panel.getByText('No device is registered').waitFor();
  expect((await callAs(server, person, 'devices.list')).devices).toEqual([]);
});

test('a bot gets a token, which is shown once, allows what was chosen, and is revoked; the bot is removed', async () => {
  const person = await newPerson('erin');
  const page = await open('erin', 'bots');
  const panel = panelOf(page);
  await panel.getByText('You have no bot').waitFor();
  await panel.getByLabel('Nick of the bot').fill('erin');
  await panel.getByRole('button', { name: 'Create a bot' }).click();
  await panel.getByRole('alert').waitFor();
  forgive();
  await panel.getByLabel('Nick of the bot').fill('erins-bot');
  await panel.getByLabel('Its name').fill('Bot <b>');
  await panel.getByRole('button', { name: 'Create a bot' }).click();
  await panel.getByText('Bot <b> (@erins-bot)').waitFor();

  await panel.getByRole('button', { name: 'of erins-bot' }).click();
  await panel.getByText('This bot has no token').waitFor();
  await panel.getByLabel('Where the token will be used').fill('deploy script');
  await panel.getByLabel('groups:read').check();
  await panel.getByLabel('Valid for').selectOption('30 days');
  await panel.getByRole('button', { name: 'Create a token' }).click();
  const secret = panel.getByRole('group', { name: 'Secret of deploy script' }).getByRole('textbox');
  const token = await secret.inputValue();
  expect(await callAs(server, { token }, 'accounts.find', { user: 'erin' })).toMatchObject({ id: person.id });
  await expect(callAs(server, { token }, 'profile.show')).rejects.toMatchObject({ code: 'missing_scope' });
  await panel.getByRole('button', { name: 'Copy' }).click();
  await panel.getByText(/Copied\.|The text is selected/).waitFor();
  await panel.getByRole('button', { name: 'Done' }).click();
  await panel.getByRole('button', { name: 'of erins-bot' }).getByText('Tokens (1)').waitFor();
  expect(await page.content()).not.toContain(token);
  const { tokens } = await callAs(server, person, 'tokens.list', { bot: 'erins-bot' });
  const expiresInDays = (Date.parse(tokens[0].expires_at) - Date.now()) / 86_400_000;
  expect(Math.round(expiresInDays)).toBe(30);

  await confirm(itemOf(panel, 'deploy script').last(), 'Revoke');
  await panel.getByText('This bot has no token').waitFor();
  await expect(callAs(server, { token }, 'accounts.find', { user: 'erin' })).rejects.toMatchObject({
    code: 'unauthenticated',
  });
  await confirm(itemOf(panel, '@erins-bot'), 'Remove');
  await panel.getByText('You have no bot').waitFor();
  expect((await callAs(server, person, 'bots.list')).bots).toEqual([]);
});

test('somebody who is blocked is listed, and unblocked', async () => {
  const [person, other] = [await newPerson('frank'), await newPerson('grace')];
  await callAs(server, person, 'blocks.add', { user: 'grace' });
  await expect(callAs(server, other, 'private.open', { user: 'frank' })).rejects.toMatchObject({ code: 'blocked' });
  const panel = panelOf(await open('frank', 'blocked'));
  await itemOf(panel, '@grace').getByRole('button', { name: 'Unblock' }).click();
  await panel.getByText('You have blocked nobody').waitFor();
  await callAs(server, other, 'private.open', { user: 'frank' });
});

test('the appearance is kept by the browser, holds in other tabs, and is there before the first frame', async () => {
  await newPerson('heidi');
  const page = await open('heidi', 'appearance', { colorScheme: 'light' });
  const tab = await page.context().newPage();
  await tab.goto(`${server.url}/c/${group}`);
  const background = (of: Page): Promise<string> =>
    of.evaluate('getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]');
  expect(Number(await background(page))).toBeGreaterThan(200);
  const panel = panelOf(page);
  await panel.getByRole('group', { name: 'Colours' }).getByLabel('dark').check();
  await panel.getByRole('group', { name: 'Density' }).getByLabel('compact').check();
  await panel.getByRole('group', { name: 'Motion' }).getByLabel('reduced').check();
  for (const each of [page, tab]) {
    await eventually(
      async () => Number(await background(each)),
      (red) => red < 60,
    );
  }
  expect(await page.evaluate('({ ...localStorage })')).toEqual({
    'klatch/:appearance': '{"theme":"dark","density":"compact","motion":"reduced"}',
  });
  const first = 'requestAnimationFrame(() => { window.firstFrame = { ...document.documentElement.dataset }; })';
  await page.addInitScript(first);
  await page.reload();
  await panel.getByText('This browser keeps the choice').waitFor();
  expect(await page.evaluate('window.firstFrame')).toMatchObject({
    theme: 'dark',
    density: 'compact',
    motion: 'reduced',
  });
  expect(await panel.getByLabel('dark').isChecked()).toBe(true);
});

describe('the address of a panel', () => {
  test('keeps it over a reload, and on a phone Back leads from the part to the list and to the conversation', async () => {
    await newPerson('ivan');
    const page = await open('ivan', null, PHONE);
    await page.getByRole('button', { name: 'All conversations' }).click();
    await page.getByRole('button', { name: 'Settings' }).click();
    const panel = panelOf(page);
    expect(new URL(page.url()).pathname).toBe('/settings');
    expect(await panel.getByRole('heading', { name: 'Profile' }).isVisible()).toBe(false);
    await panel.getByRole('link', { name: 'Sessions' }).click();
    await panel.getByText('this browser').waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Sessions');
    await page.reload();
    await panel.getByText('this browser').waitFor();
    expect(await panel.getByRole('link', { name: 'Sessions' }).isVisible()).toBe(false);
    await panel.getByRole('link', { name: 'All settings' }).click();
    await page.waitForURL(`${server.url}/settings`);
    await panel.getByRole('link', { name: 'Blocked people' }).click();
    await page.goBack();
    await page.waitForURL(`${server.url}/settings`);
    await page.goBack();
    await panel.waitFor({ state: 'detached' });
    expect(new URL(page.url()).pathname).toBe('/');
  });

  test('is left by Close and Esc as if it had not been opened', async () => {
    await newPerson('judy');
    const page = await open('judy', null);
    const lengthBefore = await page.evaluate('history.length');
    await page.getByRole('button', { name: 'Settings' }).click();
    const panel = panelOf(page);
    await panel.getByRole('link', { name: 'Devices' }).click();
    await panel.getByText('No device is registered').waitFor();
    // A second click on the close button, before the browser has gone back, must not go back further.
    await page.evaluate(
      '{ const close = document.querySelector("dialog .modal-head button"); close.click(); close.click(); }',
    );
    await panel.waitFor({ state: 'detached' });
    expect(page.url()).toBe(`${server.url}/c/${group}`);
    await page.getByRole('button', { name: 'Details' }).click();
    await panel.getByRole('heading', { name: 'Notifications' }).waitFor();
    expect(page.url()).toBe(`${server.url}/c/${group}/about`);
    expect(await page.evaluate('history.length')).toBe((lengthBefore as number) + 1);
    await page.reload();
    await panel.getByRole('heading', { name: 'Notifications' }).waitFor();
    await page.keyboard.press('Escape');
    await panel.waitFor({ state: 'detached' });
    expect(page.url()).toBe(`${server.url}/c/${group}`);
  });

  test('opens the panel for who comes by it, and Close leads to the conversations', async () => {
    await newPerson('kate');
    const page = await open('kate', 'shortcuts');
    const panel = panelOf(page);
    await panel.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor();
    await panel.getByRole('button', { name: 'Close' }).click();
    // The window has room for a conversation beside the list, so the page opens one.
    await page.waitForURL(`${server.url}/c/${group}`);
  });
});

test('"?" shows the keys, but in a field it is a character', async () => {
  await newPerson('liam');
  const page = await open('liam', null);
  await page.getByRole('textbox').press('?');
  expect(await page.getByRole('textbox').inputValue()).toBe('?');
  await page.getByRole('textbox').fill('');
  await page.getByRole('button', { name: 'Details' }).focus();
  await page.keyboard.press('?');
  const panel = panelOf(page);
  await panel.getByRole('row', { name: 'Ctrl K find a conversation' }).waitFor();
  await page.keyboard.press('Escape');
  await panel.waitFor({ state: 'detached' });
  await eventually(
    () => page.evaluate<string>('document.activeElement.textContent'),
    (text) => text === 'Details',
  );
});

test('a part that cannot be read says why and is read again, and without a connection it says so', async () => {
  await newPerson('mona');
  const page = await open('mona', null);
  let isCut = false;
  const sockets: WebSocketRoute[] = [];
  await page.routeWebSocket(/\/v1\/live/, (socket) => {
    if (isCut) void socket.close();
    else {
      socket.connectToServer();
      sockets.push(socket);
    }
  });
  await page.reload();
  await page.route('**/v1/api/blocks.list', (route) =>
    route.fulfill({ status: 503, json: { status: 'failure', code: 'overloaded', message: 'Too much at once' } }),
  );
  await page.getByRole('button', { name: 'Settings' }).click();
  const panel = panelOf(page);
  await panel.getByRole('link', { name: 'Blocked people' }).click();
  await panel.getByRole('alert').getByText('Too much at once').waitFor();
  await page.unroute('**/v1/api/blocks.list');
  await panel.getByRole('button', { name: 'Try again' }).click();
  await panel.getByText('You have blocked nobody').waitFor();

  isCut = true;
  await page.context().setOffline(true);
  for (const socket of sockets) await socket.close();
  await panel.getByText('There is no connection to the server').waitFor();
  await panel.getByRole('link', { name: 'Devices' }).click();
  await panel.getByRole('alert').waitFor();
  isCut = false;
  await page.context().setOffline(false);
  // The panel reads its data again without a click.
  await panel.getByText('No device is registered').waitFor();
  await panel.getByText('There is no connection to the server').waitFor({ state: 'detached' });
  forgive();
});
