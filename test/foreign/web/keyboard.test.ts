import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { BrowserContext, Locator, Page } from 'playwright-core';
import { eventually } from '../../support/eventually.ts';
import { postJson, type TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

const MESSAGES = 300;

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

async function newGroup(title: string) {
  const group = await server.createGroup(title);
  for (const user of ['alice', 'bob']) await server.operate('groups.add-member', { group: group.id, user });
  return group;
}

/** Fills a conversation with messages of a member, which are all read. */
async function fill(conversation: number): Promise<void> {
  await server.database.query(async (sql) => {
    await sql`insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
      select ${conversation}, n, n + 10, (select id from account where nick = 'bob'), 'message ' || n || repeat(' and more of it', (n % 17)::int), now()
      from generate_series(1, ${MESSAGES}) n`;
    await sql`update conversation_head set last_seq = ${MESSAGES}, last_rev = ${MESSAGES + 10}, last_at = now() where conversation_id = ${conversation}`;
    await sql`update membership set read_seq = ${MESSAGES} where conversation_id = ${conversation}`;
  });
}

async function openAsAlice(path: string): Promise<Page> {
  const profile = await browser.newProfile();
  profiles.push(profile);
  const { page, complaints: own } = await openAs(server, profile, 'alice', path);
  complaints.push(own);
  return page;
}

/** The seq of the message that has the focus, or else the name of the element. */
const focused = (page: Page) =>
  page.evaluate<number | string>(
    '((element) => Number(element.getAttribute("aria-posinset")) || element.localName)(document.activeElement)',
  );
const focuses = (page: Page, what: number | string) =>
  eventually(
    () => focused(page),
    (now) => now === what,
  );
/** Whether all of the message that has the focus is in view. */
const isWholeInView = (page: Page) =>
  page.evaluate<boolean>(`(() => {
    const [row, feed] = [document.activeElement, document.querySelector('.feed')].map((each) => each.getBoundingClientRect());
    return row.top >= feed.top - 1 && row.bottom <= feed.bottom + 1;
  })()`);

/** Presses Shift+Tab in the composer until the focus is in the list of messages. */
async function enterFeed(page: Page): Promise<void> {
  for (let presses = 0; presses < 5 && typeof (await focused(page)) === 'string'; presses += 1)
    await page.keyboard.press('Shift+Tab');
}

/** Waits for a text: the page draws in frames of its own, so a key shows its effect a moment later. */
const untilText = (field: Locator, wanted: string) =>
  eventually(
    () => field.inputValue(),
    (text) => text === wanted,
  );

test('arrows and page keys move through messages, one of which is the stop of the Tab key, and the view follows', async () => {
  const { id, webhook } = await newGroup('Moves');
  await fill(id);
  const page = await openAsAlice(`/c/${id}`);
  await page.locator(`[aria-posinset="${MESSAGES}"]`).waitFor();
  await enterFeed(page);
  await focuses(page, MESSAGES);
  expect(await page.locator('.feed article[tabindex="0"]').count()).toBe(1);
  await page.keyboard.press('ArrowUp');
  await focuses(page, MESSAGES - 1);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await focuses(page, MESSAGES);

  await page.keyboard.press('PageUp');
  const before = await eventually(
    () => focused(page),
    (now) => typeof now === 'number' && now < MESSAGES - 2,
  );
  expect(await isWholeInView(page)).toBe(true);
  await page.keyboard.press('PageDown');
  await eventually(
    () => focused(page),
    (now) => now > before,
  );
  await page.keyboard.press('Home');
  await focuses(page, 1);
  expect(await isWholeInView(page)).toBe(true);
  // The list may grow, so its size is unknown: WAI-ARIA uses -1 for that.
  expect(await page.locator('[aria-posinset="1"]').getAttribute('aria-setsize')).toBe('-1');
  for (let presses = 0; presses < 12; presses += 1) await page.keyboard.press('ArrowDown');
  await focuses(page, 13);
  expect(await isWholeInView(page)).toBe(true);

  // New messages move no row, and the focused message keeps the focus however far the view is scrolled.
  const top = 'document.activeElement.getBoundingClientRect().top';
  const topBefore = await page.evaluate<number>(top);
  for (let count = 0; count < 5; count += 1) await postJson(webhook, { text: `late ${count}` });
  await page.getByRole('button', { name: /5 new messages/ }).waitFor();
  expect(await page.evaluate<number>(top)).toBe(topBefore);
  await page.evaluate('document.querySelector(".feed").scrollTop = 8000');
  await eventually(
    () => page.locator('[aria-posinset="12"]').count(),
    (count) => count === 0,
  );
  expect(await focused(page)).toBe(13);
  await page.keyboard.press('ArrowDown');
  await focuses(page, 14);
  expect(await isWholeInView(page)).toBe(true);

  await page.keyboard.press('Escape');
  await focuses(page, 'textarea');
  await page.locator(`[aria-posinset="${MESSAGES + 5}"]`).waitFor();
  expect(await page.getByRole('link', { name: /Moves/ }).getByRole('img').count()).toBe(0);
});

test('keys edit, copy, delete and open the menu of the message that has the focus, and leave Ctrl to the browser', async () => {
  const { id, webhook } = await newGroup('Commands');
  await postJson(webhook, { text: 'by a program' });
  const page = await openAsAlice(`/c/${id}`);
  const field = page.getByRole('textbox');
  await field.fill('mine');
  await field.press('Enter');
  await page.locator('[aria-posinset="2"]').waitFor();
  await profiles[0]!.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.url });

  await enterFeed(page);
  await focuses(page, 2);
  await page.keyboard.press('e');
  await focuses(page, 'textarea');
  await untilText(field, 'mine');
  await page.keyboard.press('Escape');
  await untilText(field, '');

  await enterFeed(page);
  await page.keyboard.press('ArrowUp');
  await focuses(page, 1);
  // The message is not by alice, so copying is her only command for it.
  await page.keyboard.press('e');
  await page.keyboard.press('Delete');
  await focuses(page, 1);
  expect(await page.getByRole('button', { name: 'Undo' }).count()).toBe(0);
  await page.keyboard.press('c');
  await page.getByText('Text copied.').waitFor();
  expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe('by a program');

  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('menu').waitFor();
  expect(await page.getByRole('menuitem').count()).toBe(4);
  await page.keyboard.press('Escape');
  await focuses(page, 2);
  await page.keyboard.press('Delete');
  await focuses(page, 2);
  // The first Tab leads to the name of the sender, which opens a card, and the second one to Undo.
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Undo');
  await page.keyboard.press('Enter');
  await focuses(page, 2);
  await page.getByRole('article').getByText('mine').waitFor();

  await page.evaluate('addEventListener("keydown", (event) => { globalThis.isTaken = event.defaultPrevented; })');
  for (const [key, isTaken] of [
    ['Control+f', false],
    ['Control+c', false],
    ['x', false],
    ['End', true],
  ] as const) {
    await page.keyboard.press(key);
    expect([key, await page.evaluate('globalThis.isTaken')]).toEqual([key, isTaken]);
  }
  // After a click on a message, keys are no commands for that message, and text goes to the composer.
  await field.click();
  await page.getByRole('article').getByText('mine').click();
  await page.keyboard.type('Each');
  expect(await field.inputValue()).toBe('Each');
});

test('keys of the composer edit the last own message, scroll, and lead to other conversations and unread ones', async () => {
  const [first, second, third] = [await newGroup('Keys 1'), await newGroup('Keys 2'), await newGroup('Keys 3')];
  await fill(first.id);
  const page = await openAsAlice(`/c/${first.id}`);
  const field = page.getByRole('textbox');
  await page.locator(`[aria-posinset="${MESSAGES}"]`).waitFor();
  await field.press('PageUp');
  await page.getByRole('button', { name: 'To the newest message' }).waitFor();
  await focuses(page, 'textarea');
  await field.press('PageDown');
  await page.getByRole('button', { name: 'To the newest message' }).waitFor({ state: 'detached' });

  await field.fill('my last one');
  await field.press('Enter');
  // A message that the server has not stored yet cannot be edited.
  await page
    .locator(`[aria-posinset="${MESSAGES + 1}"]`)
    .getByText('my last one')
    .waitFor();
  await field.press('ArrowUp');
  await untilText(field, 'my last one');
  await field.press('Escape');

  const titles = () => page.getByRole('navigation').locator('.title').allInnerTexts();
  const heading = (name: string) => page.getByRole('heading', { name, exact: true }).waitFor();
  for (const { webhook } of [second, third]) await postJson(webhook, { text: 'unread' });
  await eventually(titles, ([newest]) => newest === 'Keys 3');
  // The list of conversations is ordered by activity: Keys 3, Keys 2, Keys 1.
  await page.keyboard.press('Alt+ArrowUp');
  await heading('Keys 2');
  await page
    .getByRole('link', { name: /Keys 2/ })
    .getByRole('img')
    .waitFor({ state: 'detached' });
  await page.keyboard.press('Alt+ArrowDown');
  await heading('Keys 1');
  await page.keyboard.press('Alt+Shift+ArrowUp');
  await heading('Keys 3');
  expect(await field.inputValue()).toBe('');
});
