import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { eventually } from '../../support/eventually.ts';
import { postJson, type TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

let server: TestServer;
let browser: WebBrowser;
const profiles: BrowserContext[] = [];
const complaints: (readonly string[])[] = [];

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
  for (const nick of ['alice', 'bob']) await server.operate('accounts.create', { nick, name: nick });
});
afterEach(async () => {
  for (const profile of profiles.splice(0)) await profile.close();
  expect(complaints.splice(0).flat()).toEqual([]);
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

async function newGroup(title: string, texts: readonly string[]): Promise<number> {
  const { id, webhook } = await server.createGroup(title);
  await server.operate('groups.add-member', { group: id, user: 'alice' });
  await server.operate('groups.set-role', { group: id, user: 'alice', role: 'admin' });
  await server.operate('groups.add-member', { group: id, user: 'bob' });
  for (const text of texts) await postJson(webhook, { text });
  return id;
}

async function open(nick: string, path: string): Promise<Page> {
  const profile = await browser.newProfile();
  profiles.push(profile);
  const { page, complaints: own } = await openAs(server, profile, nick, path);
  complaints.push(own);
  return page;
}

const article = (page: Page, text: string) => page.getByRole('article').filter({ hasText: text });

/** Opens the menu of a message by the pointer. */
async function openMenu(page: Page, text: string): Promise<void> {
  await article(page, text).hover();
  await article(page, text)
    .getByRole('button', { name: /^More for message/ })
    .click();
  // The browser loads the code of the menu on its first use.
  await page.getByRole('menu').waitFor();
}

const storedTexts = (conversation: number) =>
  server.database.query(async (sql) => {
    const rows = await sql<
      { text: string }[]
    >`select text from message where conversation_id = ${conversation} order by seq`;
    return rows.map(({ text }) => text);
  });

test('the menu of a message offers what one may do, by pointer and by keys, and copies text and link', async () => {
  const id = await newGroup('Menu', ['by a *program*']);
  const [alice, bob] = [await open('alice', `/c/${id}`), await open('bob', `/c/${id}`)];
  await bob.getByRole('textbox').fill('by bob');
  await bob.getByRole('textbox').press('Enter');
  await article(alice, 'by bob').waitFor();

  await openMenu(bob, 'by a *program*');
  const items = bob.getByRole('menuitem');
  expect(await items.allInnerTexts()).toEqual(['Copy text\nC', 'Copy link']);
  expect(await items.first().evaluate((each) => each === each.ownerDocument.activeElement)).toBe(true);
  await bob.keyboard.press('ArrowUp');
  await bob.keyboard.press('Escape');
  await items.first().waitFor({ state: 'detached' });
  expect(await bob.evaluate('document.activeElement.localName')).toBe('article');

  await profiles[1]!.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.url });
  const clipboard = () => bob.evaluate<string>('navigator.clipboard.readText()');
  await openMenu(bob, 'by a *program*');
  await bob.keyboard.press('Enter');
  await bob.getByText('Text copied.').waitFor();
  expect(await clipboard()).toBe('by a *program*');
  await openMenu(bob, 'by a *program*');
  await bob.getByRole('menuitem', { name: 'Copy link' }).click();
  await bob.getByText('Link copied.').waitFor();
  expect(await clipboard()).toBe(`${server.url}/c/${id}/1`);

  await openMenu(bob, 'by bob');
  expect(await items.allInnerTexts()).toEqual(['Copy text\nC', 'Copy link', 'Edit\nE', 'Delete\nDelete']);
  await bob.getByRole('menuitem', { name: 'Edit' }).click();
  expect(await bob.getByRole('textbox').inputValue()).toBe('by bob');
  // An admin may edit and delete messages of others.
  await openMenu(alice, 'by bob');
  expect(await alice.getByRole('menuitem').count()).toBe(4);
  await alice.mouse.click(5, 5);
  await alice.getByRole('menu').waitFor({ state: 'detached' });
  await openMenu(alice, 'by bob');
  await alice.getByRole('menuitem', { name: 'Edit' }).click();
  await alice.getByText('You are editing a message of bob. A notice will tell the group.').waitFor();
  await alice.getByRole('textbox').fill('by bob, mended');
  await alice.getByRole('textbox').press('Enter');
  await article(bob, 'by bob, mended').getByText('edited').waitFor();
});

test('a deletion can be undone, survives another conversation, and is sent when its page is closed', async () => {
  const id = await newGroup('Deleted', ['one', 'two', 'three']);
  await newGroup('Elsewhere', []);
  const page = await open('alice', `/c/${id}`);
  const remove = async (text: string) => {
    await openMenu(page, text);
    await page.getByRole('menuitem', { name: 'Delete' }).click();
  };
  await remove('one');
  await page.getByRole('button', { name: 'Undo' }).click();
  await article(page, 'one').waitFor();
  // The focus is on the message now, and what one types belongs to the composer.
  await page.keyboard.type('Each letter');
  expect(await page.getByRole('textbox').inputValue()).toBe('Each letter');
  await page.getByRole('textbox').fill('');

  await remove('two');
  await page.getByRole('link', { name: /Elsewhere/ }).click();
  await page.getByRole('textbox', { name: 'Write to Elsewhere' }).waitFor();
  await eventually(
    () => storedTexts(id),
    (texts) => JSON.stringify(texts) === JSON.stringify(['one', '', 'three']),
  );
  await page.getByRole('link', { name: /Deleted/ }).click();
  await page.getByText('This message was deleted.').waitFor();

  await remove('three');
  await page.getByRole('button', { name: 'Undo' }).waitFor();
  expect(await storedTexts(id)).toEqual(['one', '', 'three']);
  await page.goto('about:blank');
  await eventually(
    () => storedTexts(id),
    (texts) => JSON.stringify(texts) === JSON.stringify(['one', '', '']),
  );
});
