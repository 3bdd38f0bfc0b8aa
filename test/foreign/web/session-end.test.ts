import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { eventually } from '../../support/eventually.ts';
import type { TestServer } from '../../support/server.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

const SHARED = 'Other people use this computer';
/** Matches the complaint about a request that was running when the session ended. */
const UNAUTHENTICATED_REQUEST = /^Failed to load resource.* 401 /;
const HOUR_MS = 60 * 60_000;

let server: TestServer;
let browser: WebBrowser;
let group: number;
let profile: BrowserContext;
const complaints: (readonly string[])[] = [];

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
  group = (await server.createGroup('Lobby')).id;
  for (const nick of ['alice', 'bob']) {
    await server.operate('accounts.create', { nick, name: nick });
    await server.operate('groups.add-member', { group, user: nick });
  }
});
afterEach(async () => {
  await profile.close();
  const others = complaints.splice(0).flat();
  expect(others.filter((each) => !UNAUTHENTICATED_REQUEST.test(each))).toEqual([]);
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

async function newTab(): Promise<Page> {
  const { page, complaints: ofPage } = await WebBrowser.watch(profile);
  complaints.push(ofPage);
  return page;
}

async function newLink(nick: string): Promise<string> {
  return (await server.operate<{ link: string }>('accounts.invite', { user: nick })).link;
}

async function signIn(page: Page, nick: string, { isShared = false } = {}): Promise<void> {
  await page.getByLabel('Paste the sign-in link').fill(await newLink(nick));
  if (isShared) await page.getByLabel(SHARED).check();
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByText(`Signed in as ${nick}`).waitFor();
}

/** Signs an account in with a new browser profile; resolves with a tab of it. */
async function openAs(nick: string, options = {}): Promise<Page> {
  profile = await browser.newProfile();
  const page = await newTab();
  await page.goto(`${server.url}/c/${group}`);
  await signIn(page, nick, options);
  await page.getByRole('textbox').waitFor();
  return page;
}

const sessionOf = (page: Page) =>
  page.evaluate<{ session: number; expires_at: string | null }>("fetch('/v1/session').then((answer) => answer.json())");
/** Ends the session as another device of the account does. */
const endSession = async (page: Page): Promise<void> => {
  const { session } = await sessionOf(page);
  await server.database.query((sql) => sql`delete from session where id = ${session}`);
  await server.operate('accounts.update', { user: 'alice', name: 'alice' });
};
const databases = (page: Page) => page.evaluate<unknown[]>('indexedDB.databases()');
const keptDrafts = (page: Page) =>
  page.evaluate<number>(`new Promise((resolve) => {
    const open = indexedDB.open('klatch/');
    open.onsuccess = () => {
      const all = open.result.transaction('drafts').objectStore('drafts').getAll();
      all.onsuccess = () => {
        open.result.close();
        resolve(all.result.length);
      };
    };
  })`);

describe('on a computer that others use', () => {
  test('the session is short, and the browser keeps neither cookie nor text', async () => {
    const page = await openAs('alice', { isShared: true });
    const [cookie] = await profile.cookies();
    expect([cookie!.expires, cookie!.httpOnly]).toEqual([-1, true]);
    const { expires_at: end } = await sessionOf(page);
    expect((Date.parse(end!) - Date.now()) / HOUR_MS).toBeCloseTo(12, 1);
    await page.getByRole('textbox').fill('not for the next person');
    await page.evaluate('dispatchEvent(new Event("pagehide"))');
    expect(await databases(page)).toEqual([]);
    // A page that is loaded again still knows from the server that other people use the computer.
    await page.reload();
    await page.getByRole('textbox').fill('nor this');
    await page.evaluate('dispatchEvent(new Event("pagehide"))');
    expect(await profile.storageState({ indexedDB: true })).toMatchObject({ origins: [] });
  });

  test('the end of the session says why, and nothing is left', async () => {
    const page = await openAs('alice', { isShared: true });
    const { session } = await sessionOf(page);
    await server.database.query(
      (sql) => sql`update session set expires_at = now() + interval '15 seconds' where id = ${session}`,
    );
    // After a change of the account, the server reads the session and its new end from the database.
    await server.operate('accounts.update', { user: 'alice', name: 'alice' });
    await page.reload();
    await page.getByRole('textbox').fill('begun');
    await page.getByText('@alice was signed in for a limited time').waitFor();
    expect(await databases(page)).toEqual([]);
    await signIn(page, 'bob');
    expect(await page.getByRole('textbox').inputValue()).toBe('');
  });
});

describe('a session that ended elsewhere', () => {
  test('says so, keeps what was written, and gives it to the same account alone', async () => {
    const page = await openAs('alice');
    await page.getByRole('textbox').fill('half a thought');
    await endSession(page);
    await page.getByText('@alice or the administrator of this server ended it elsewhere').waitFor();
    await page.getByText('This browser has texts of @alice that were not sent').waitFor();
    await signIn(page, 'bob');
    expect(await page.getByRole('textbox').inputValue()).toBe('');
    await page.reload();
    await page.getByText('Signed in as bob').waitFor();
    // A sign-in with a link of alice ends the session of bob, and keeps the draft of alice.
    await page.goto('about:blank');
    await page.goto(`${server.url}/#${(await newLink('alice')).split('#')[1]!}`);
    await page.getByRole('button', { name: 'Sign in with it instead' }).click();
    await page.getByText('Signed in as alice').waitFor();
    await page.goto(`${server.url}/c/${group}`);
    await eventually(
      () => page.getByRole('textbox').inputValue(),
      (text) => text === 'half a thought',
    );
  });

  test('since another tab signed somebody else in, offers to continue as that person', async () => {
    const page = await openAs('alice');
    const second = await newTab();
    await second.goto(`${server.url}/#${(await newLink('bob')).split('#')[1]!}`);
    await second.getByRole('button', { name: 'Sign in with it instead' }).click();
    await second.getByText('Signed in as bob').waitFor();
    await page.getByText('bob (@bob) is signed in to this browser now').waitFor();
    await page.getByRole('button', { name: 'Continue as @bob' }).click();
    await page.getByText('Signed in as bob').waitFor();
  });

  test('and was opened again for the same account by another tab, continues', async () => {
    // Deletes the sessions of other tests, which the count below would include.
    await server.database.query((sql) => sql`delete from session`);
    const page = await openAs('alice');
    await page.getByRole('textbox').fill('while I write');
    const second = await newTab();
    await second.goto(`${server.url}/#${(await newLink('alice')).split('#')[1]!}`);
    await second.getByRole('button', { name: 'Sign in with it instead' }).click();
    // The session of the first tab ends only after the server has answered the second tab.
    await eventually(
      () => server.database.query((sql) => sql`select id from session`),
      (sessions) => sessions.length === 1,
    );
    await eventually(
      () => page.getByRole('textbox').inputValue(),
      (text) => text === 'while I write',
    );
    await page.getByRole('textbox').press('Enter');
    await page.getByRole('article').getByText('while I write').waitFor();
    await second.getByRole('article').getByText('while I write').waitFor();
    expect(await page.getByText('You were signed out').count()).toBe(0);
  });
});

test('a sign-out says in the other tabs where it was done, and leaves no text of any of them', async () => {
  const page = await openAs('alice');
  const second = await newTab();
  await second.goto(`${server.url}/c/${group}`);
  await second.getByRole('textbox').fill('begun in the second tab');
  await eventually(
    () => keptDrafts(second),
    (count) => count === 1,
  );
  await page.getByRole('button', { name: 'Sign out' }).click();
  const question = page.getByRole('dialog', { name: 'Sign out?' });
  await question.getByText('You have begun texts that were not sent').waitFor();
  await page.keyboard.press('Escape');
  await question.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Sign out' }).click();
  await question.getByRole('button', { name: 'Sign out' }).click();
  await second.getByText('@alice signed out in another tab').waitFor();
  await page.getByLabel('Paste the sign-in link').waitFor();
  expect(await page.getByText('You were signed out').count()).toBe(0);
  await eventually(
    () => databases(page),
    (names) => names.length === 0,
  );
  expect(await profile.storageState({ indexedDB: true })).toEqual({ cookies: [], origins: [] });
});
