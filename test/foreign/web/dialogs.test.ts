import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Locator } from 'playwright-core';
import { eventually } from '../../support/eventually.ts';
import { postJson, type TestServer } from '../../support/server.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

let server: TestServer;
let browser: WebBrowser;
beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
  for (const nick of ['alice', 'bob']) await server.operate('accounts.create', { nick, name: nick });
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

/** Waits until the field has the focus, so that a person can type into it. */
const untilFocused = (field: Locator) => field.and(field.page().locator(':focus')).waitFor();

test('a person creates a group, writes to somebody, finds a message and switches conversations by the keyboard', async () => {
  const watched = await WebBrowser.watch(await browser.newProfile());
  const { page } = watched;
  const complaints = watched.complaints as string[];
  const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'alice' });
  await page.goto(`${server.url}/#${link.split('#')[1]!}`);
  await page.getByText('You are in no conversation yet').waitFor();

  await page.getByRole('button', { name: 'New', exact: true }).click();
  await page.getByLabel('Create a group').fill('Garden');
  await page.getByLabel('Create a group').press('Enter');
  await page.getByRole('heading', { name: 'Garden' }).waitFor();
  await page.getByText(/^curl -d 'hello' http:\/\/127\.0\.0\.1:\d+\/v1\/webhooks\/\S+$/).waitFor();
  const field = page.getByRole('textbox', { name: 'Write to Garden' });
  await untilFocused(field);
  await page.keyboard.type('The tomatoes are ripe');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('article').getByText('The tomatoes are ripe').waitFor();
  await untilFocused(field);

  await page.getByRole('button', { name: 'New', exact: true }).click();
  await untilFocused(page.getByLabel('Write to somebody'));
  await page.getByLabel('Write to somebody').fill('nobody');
  await page.getByLabel('Write to somebody').press('Enter');
  await page.getByRole('alert').waitFor();
  complaints.splice(0);
  await page.getByLabel('Write to somebody').fill('@bob');
  await page.getByLabel('Write to somebody').press('Enter');
  await page.getByRole('heading', { name: 'bob' }).waitFor();

  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('gard');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Garden' }).waitFor();
  await page.keyboard.press('Alt+ArrowDown');
  await page.getByRole('heading', { name: 'bob' }).waitFor();

  await page.getByRole('button', { name: 'Search' }).click();
  await untilFocused(page.getByRole('searchbox'));
  await page.keyboard.type('tomatoes');
  // A search finds a message only about a second after it was written.
  await eventually(
    async () => {
      await page.keyboard.press('Enter');
      await page.waitForTimeout(200);
      return page.locator('.found button').count();
    },
    (count) => count === 1,
  );
  await page.locator('.found button').click();
  await page.waitForURL(/\/c\/\d+\/1$/);
  await page.getByRole('article').getByText('The tomatoes are ripe').waitFor();
  expect(complaints).toEqual([]);
});

test('a server that is away is told of, with an attempt at once; what comes back is complete', async () => {
  const group = await server.createGroup('Cuts');
  await server.operate('groups.add-member', { group: group.id, user: 'bob' });
  const profile = await browser.newProfile();
  const { page } = await WebBrowser.watch(profile);
  const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'bob' });
  await page.goto(`${server.url}/#${link.split('#')[1]!}`);
  await page.getByText('Signed in as bob').waitFor();
  await page.goto(`${server.url}/c/${group.id}`);
  await postJson(group.webhook, { text: 'before' });
  await page.getByRole('article').getByText('before').waitFor();
  let isCut = true;
  const sockets: { close: () => Promise<void> }[] = [];
  await page.routeWebSocket(/\/v1\/live/, (socket) => {
    if (isCut) void socket.close();
    else {
      socket.connectToServer();
      sockets.push(socket);
    }
  });
  await page.reload();
  await page.getByText('No connection').waitFor();
  for (const text of ['during 1', 'during 2']) await postJson(group.webhook, { text });
  isCut = false;
  const isConnected = page.getByText('No connection').waitFor({ state: 'detached' });
  const isClicked = page.getByRole('button', { name: 'Try now' }).click();
  // If the page connects by itself before the click, the button is gone and the click fails.
  isClicked.catch(() => {});
  await Promise.race([isClicked, isConnected]);
  await isConnected;
  await postJson(group.webhook, { text: 'after' });
  await eventually(
    () => page.locator('.feed .text').allInnerTexts(),
    (texts) => JSON.stringify(texts) === JSON.stringify(['before', 'during 1', 'during 2', 'after']),
  );
});
