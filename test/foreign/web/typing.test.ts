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
  await server.operate('accounts.create', { nick: 'alice', name: 'Alice' });
  await server.operate('accounts.create', { nick: 'bob', name: 'Bob <b>' });
});
afterEach(async () => {
  for (const profile of profiles.splice(0)) await profile.close();
  expect(complaints.splice(0).flat()).toEqual([]);
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

async function open(nick: string, path: string): Promise<Page> {
  const profile = await browser.newProfile();
  profiles.push(profile);
  const { page, complaints: own } = await openAs(server, profile, nick, path);
  complaints.push(own);
  return page;
}

test('one sees who types until the message comes, and whether the other one of a private conversation is online', async () => {
  const { id } = await server.createGroup('Typing');
  for (const user of ['alice', 'bob']) await server.operate('groups.add-member', { group: id, user });
  const [alice, bob] = [await open('alice', `/c/${id}`), await open('bob', `/c/${id}`)];
  const composerTop = 'document.querySelector("textarea").getBoundingClientRect().top';
  const before = await alice.evaluate(composerTop);
  await bob.getByRole('textbox').pressSequentially('hello');
  await alice.getByText('Bob <b> is typing …').waitFor();
  expect(await alice.evaluate(composerTop)).toBe(before);
  expect(await bob.getByText('is typing').count()).toBe(0);
  await bob.getByRole('textbox').press('Enter');
  await alice.getByRole('article').getByText('hello').waitFor();
  await alice.getByText('is typing').waitFor({ state: 'detached' });

  await alice.getByRole('button', { name: 'New', exact: true }).click();
  await alice.getByLabel('Write to somebody').fill('bob');
  await alice.getByLabel('Write to somebody').press('Enter');
  const head = alice.locator('.pane-head');
  await head.getByText('online', { exact: true }).waitFor();
  await alice.getByRole('link', { name: /Bob/ }).getByRole('img', { name: 'online' }).waitFor();
  await profiles[1]!.close();
  await head.getByText('not online').waitFor();
  await alice.getByRole('link', { name: /Bob/ }).getByRole('img', { name: 'online' }).waitFor({ state: 'detached' });
});

test('a screen reader hears a message that comes alone, and the number of many, in a region of the page', async () => {
  const { id, webhook } = await server.createGroup('Spoken');
  await server.operate('groups.add-member', { group: id, user: 'alice' });
  await postJson(webhook, { text: 'before' });
  const page = await open('alice', `/c/${id}`);
  await page.getByRole('article').getByText('before').waitFor();
  await page.evaluate(`{
    globalThis.spoken = [];
    const read = () => {
      for (const region of document.querySelectorAll('.timeline [role=status]')) {
        const text = region.textContent.trim();
        if (text !== '' && text !== spoken.at(-1)) spoken.push(text);
      }
    };
    new MutationObserver(read).observe(document.querySelector('.timeline'), { subtree: true, childList: true, characterData: true });
  }`);
  const spoken = () => page.evaluate<string[]>('spoken');
  await postJson(webhook, { text: 'first' });
  await eventually(spoken, ({ length }) => length === 1);
  await Promise.all(Array.from({ length: 12 }, (_, index) => postJson(webhook, { text: `more ${index}` })));
  await eventually(spoken, (texts) => texts.some((text) => text.endsWith('new messages')));
  const texts = await spoken();
  expect(texts[0]).toMatch(/: first$/);
  // The page announces several new messages once in an interval. On a slow machine the messages arrive in several
  // intervals.
  expect(texts.length).toBeLessThan(6);
  await page.getByRole('textbox').fill('my own');
  await page.getByRole('textbox').press('Enter');
  await page.getByRole('article').getByText('my own').waitFor();
  expect((await spoken()).join()).not.toContain('my own');
});
