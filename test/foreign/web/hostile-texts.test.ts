import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { uploaded } from '../../http/files-fixture.ts';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import { postJson, type TestGroup, type TestServer } from '../../support/server.ts';
import { HOSTILE_NAMES, HOSTILE_TEXTS } from './hostile-texts.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser, type WatchedPage } from './web-browser.ts';

/** Limits that are higher than the texts need: these tests are not about the limits of the server. */
const ENOUGH = 1_000;
const RATE = 1_000_000;
/** The elements that the client draws. A text that became HTML would add another element, or one with a handler. */
const ELEMENTS =
  'a article aside b bdi br button circle code dd del dialog div dl dt em fieldset footer form h1 h2 h3 h4 header hr i img ' +
  'input label legend li main nav ol optgroup option output p path pre progress q rect section select small span strong svg table ' +
  'tbody td textarea th thead time title tr ul';

/** Lists the elements and attributes of the page that are not allowed. A text that runs as a script calls `strike`. */
const INSPECT = `(() => {
  const elements = new Set('${ELEMENTS}'.split(' '));
  const found = [];
  const isOwn = (address) => new URL(address, location.href).origin === location.origin;
  for (const element of document.body.querySelectorAll('*')) {
    const name = element.localName;
    // The scripts of the page itself are allowed.
    if (element.parentElement === document.body && (name === 'noscript' || (name === 'script' && isOwn(element.src)))) continue;
    if (!elements.has(name)) found.push('element ' + name);
    for (const { name: attribute, value } of element.attributes) {
      if (attribute.startsWith('on') || attribute === 'srcdoc' || attribute === 'formaction') found.push(name + ' ' + attribute);
      const isAddress = attribute === 'href' || attribute === 'src' || attribute === 'action';
      if (!isAddress) continue;
      const { protocol } = new URL(value, location.href);
      const isLink = name === 'a' && ['http:', 'https:', 'mailto:'].includes(protocol);
      if (!isLink && !(protocol === 'blob:' || isOwn(value))) found.push(name + ' ' + attribute + ' ' + value);
    }
  }
  return [...new Set(found)];
})()`;

let server: TestServer;
let browser: WebBrowser;
let alice: TestPerson;
let group: TestGroup;
let watched: WatchedPage;
const foreignRequests: string[] = [];

beforeAll(async () => {
  browser = await WebBrowser.start();
  const limits = {
    postsPerSecondPerToken: RATE,
    postBurstPerToken: RATE,
    sessionRequestRate: RATE,
    sessionRequestBurst: RATE,
    botsPerUser: ENOUGH,
    sessionsPerUser: ENOUGH,
    createdOrJoinedConversationsPerUser: ENOUGH,
  };
  server = await startServerForBrowsers({ limits });
  alice = await createPerson(server, 'alice');
  group = await server.createGroup('Harbour');
  await server.operate('groups.add-member', { group: group.id, user: 'alice' });
  await server.operate('groups.set-role', { group: group.id, user: 'alice', role: 'admin' });
  watched = await openAs(server, await browser.newProfile(), 'alice', `/c/${group.id}`);
  const { page } = watched;
  await page.addInitScript('globalThis.strike = () => { globalThis.isStruck = true; }');
  page.on('dialog', (dialog) => void dialog.dismiss().then(() => foreignRequests.push('dialog')));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (origin !== server.url && protocol !== 'blob:') foreignRequests.push(request.url());
  });
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

/** Expects that every text of the page is still text. */
async function isHarmless(page: Page): Promise<void> {
  expect(await page.evaluate<string[]>(INSPECT)).toEqual([]);
  expect(await page.evaluate<boolean>('globalThis.isStruck === true')).toBe(false);
  expect(foreignRequests).toEqual([]);
  expect(watched.complaints).toEqual([]);
}

async function open(path: string): Promise<Page> {
  const { page } = watched;
  await page.goto(`${server.url}${path}`);
  await page.getByRole('textbox').first().waitFor();
  return page;
}

/** Scrolls through a list from its end, and looks at each view. */
async function lookThrough(page: Page, selector: string): Promise<number> {
  const shown = new Set<string>();
  for (let isAtTop = false; !isAtTop;) {
    await eventually(
      () => page.locator('.feed .unloaded').count(),
      (count) => count === 0,
    );
    await isHarmless(page);
    const seqs = `[...document.querySelectorAll('${selector} article')].map((each) => each.getAttribute('aria-posinset'))`;
    for (const seq of await page.evaluate<string[]>(seqs)) shown.add(seq);
    isAtTop = await page.evaluate<boolean>(
      `(() => { const list = document.querySelector('${selector}'); const top = list.scrollTop; list.scrollTop -= list.clientHeight; return top === 0; })()`,
    );
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
  }
  return shown.size;
}

test('texts, labels, names of files and all parts of cards stay text', async () => {
  for (const text of HOSTILE_TEXTS) {
    const field = { title: text, value: text, short: true };
    const action = { type: 'button', text, url: text };
    const card = { title: text, title_link: text, author_name: text, author_link: text, text, footer: text };
    const attachment = { ...card, fields: [field], actions: [action], color: text, image_url: text, thumb_url: text };
    const posted = await postJson(group.webhook, { text, username: text, icon_url: text, attachments: [attachment] });
    expect(posted.status).toBe(200);
    const file = await uploaded(server, alice, 'content', `${text.replaceAll(/[\\/]/g, '_')}.txt`);
    await callAs(server, alice, 'messages.send', { conversation: group.id, text, files: [file.id] });
  }
  const page = await open(`/c/${group.id}`);
  const messages = 2 * HOSTILE_TEXTS.length;
  await page.locator(`[aria-posinset="${messages}"]`).waitFor();
  expect(await lookThrough(page, '.feed')).toBe(messages);
  await page.getByRole('button', { name: 'My files' }).click();
  await page.getByRole('dialog').getByRole('listitem').first().waitFor();
  await isHarmless(page);
});

test('titles and descriptions of groups, and what is said of them, stay text', async () => {
  for (const text of HOSTILE_NAMES) {
    await callAs(server, alice, 'groups.create', { title: text, about: text, public: true });
    await callAs(server, alice, 'groups.update', { group: group.id, title: text, about: text });
  }
  const page = await open(`/c/${group.id}`);
  await eventually(
    () => page.locator('.notice').count(),
    (count) => count >= HOSTILE_NAMES.length,
  );
  await isHarmless(page);
  await page.getByRole('button', { name: 'Details' }).click();
  await page.locator('dialog.drawer').getByRole('heading', { name: 'Notifications' }).waitFor();
  await isHarmless(page);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'New', exact: true }).click();
  const more = page.getByRole('dialog').getByRole('button', { name: 'Show more' });
  for (let pages = 0; pages < 3; pages += 1) await more.click();
  await isHarmless(page);
});

test('names and descriptions of people stay text', async () => {
  let newest = 0;
  for (const [index, text] of HOSTILE_NAMES.entries()) {
    const person = await createPerson(server, `person-${index}`);
    await callAs(server, person, 'profile.update', { name: text, about: text });
    await server.operate('groups.add-member', { group: group.id, user: person.nick });
    const sent = await callAs<{ seq: number }>(server, person, 'messages.send', { conversation: group.id, text: 'hi' });
    newest = sent.seq;
  }
  // With all messages read, the page opens at the end and not at the first unread message.
  await callAs(server, alice, 'messages.mark-read', { conversation: group.id, seq: newest });
  const page = await open(`/c/${group.id}/about`);
  await page.locator('dialog.drawer').getByText('@person-0', { exact: false }).first().waitFor();
  await isHarmless(page);
  await page.keyboard.press('Escape');
  await page.locator(`[aria-posinset="${newest}"]`).waitFor();
  expect(await lookThrough(page, '.feed')).toBe(newest);
});

test('names of bots, tokens and app passwords stay text', async () => {
  for (const [index, text] of HOSTILE_NAMES.entries()) {
    const label = text.slice(0, 100);
    await callAs(server, alice, 'bots.create', { nick: `bot-${index}`, name: text });
    await callAs(server, alice, 'sessions.create', { label });
  }
  for (const part of ['bots', 'app-passwords', 'sessions']) {
    const page = await open(`/c/${group.id}`);
    await page.goto(`${server.url}/settings/${part}`);
    await page.locator('.settings-list > li').first().waitFor();
    await isHarmless(page);
  }
});

test('what is searched for and found, and a draft, stay text', async () => {
  const page = await open(`/c/${group.id}`);
  for (const text of HOSTILE_TEXTS) {
    await page.getByRole('textbox').first().fill(text);
    await isHarmless(page);
  }
  await page.getByRole('textbox').first().fill('');
  await page.getByRole('button', { name: 'Search' }).click();
  const field = page.getByRole('searchbox');
  await eventually(
    async () => {
      await field.fill('strike');
      await field.press('Enter');
      return page.locator('.found button').count();
    },
    (count) => count > 0,
  );
  await isHarmless(page);
});
