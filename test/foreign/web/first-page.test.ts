import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { BrowserContext } from 'playwright-core';
import { eventually } from '../../support/eventually.ts';
import { postJson, type TestServer } from '../../support/server.ts';
import { FAR_HOST, startServerForBrowsers, WebBrowser, type WatchedPage } from './web-browser.ts';

const FORBIDDEN_FRAME = /frame-ancestors|refused to connect|chrome-error/i;

let server: TestServer;
let browser: WebBrowser;
let group: { id: number; webhook: string };
let profile: BrowserContext | null = null;

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
  for (const [nick, name] of [
    ['alice', 'Alice <b>Example</b>'],
    ['bob', 'Bob'],
  ]) {
    await server.operate('accounts.create', { nick, name });
  }
  const created = await server.createGroup('Lobby <img src=x onerror=alert(1)>');
  group = { id: created.id, webhook: created.webhook };
  for (const user of ['alice', 'bob']) await server.operate('groups.add-member', { group: group.id, user });
});
afterEach(async () => {
  await profile?.close();
  profile = null;
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

/** Creates a sign-in link of the account; resolves with its token. */
async function newToken(user: string): Promise<string> {
  const { link } = await server.operate<{ link: string }>('accounts.invite', { user });
  return link.split('#')[1]!;
}

async function open(address: string): Promise<WatchedPage> {
  profile = await browser.newProfile();
  const watched = await WebBrowser.watch(profile);
  await watched.page.goto(address);
  return watched;
}

const signedInAs = (watched: WatchedPage, name: string) => watched.page.getByText(`Signed in as ${name}`).waitFor();

describe('the printed address', () => {
  test('signs in without a click on this machine, shows what is unread as it comes, and the browser complains of nothing', async () => {
    const token = await newToken('alice');
    const watched = await open(`${server.url}/#${token}`);
    const { page, complaints } = watched;
    await signedInAs(watched, 'Alice <b>Example</b> (@alice)');
    // The conversation is open, and a person can write at once.
    await page.waitForURL(`${server.url}/c/${group.id}`);
    // HTML in names and texts of people stays text and becomes no elements.
    await page.getByRole('heading', { name: 'Lobby <img src=x onerror=alert(1)>' }).waitFor();
    expect(await page.locator('#app img, #app b').count()).toBe(0);
    expect(await page.evaluate('document.activeElement.localName')).toBe('textarea');
    expect((await postJson(group.webhook, { text: 'one' })).status).toBe(200);
    await page.getByRole('article').getByText('one').waitFor();

    const [cookie, ...others] = await profile!.cookies();
    expect(others).toEqual([]);
    expect(cookie).toMatchObject({ path: '/', httpOnly: true, sameSite: 'Strict', secure: false, domain: '127.0.0.1' });
    expect(cookie!.name).toMatch(/^klatch-[0-9a-f]{8}$/);
    expect(await page.evaluate('document.cookie')).toBe('');
    expect(await page.evaluate('({ ...localStorage, ...sessionStorage })')).toEqual({});
    expect(await page.content()).not.toContain(token);
    expect(complaints).toEqual([]);
  });

  test('by another name of this machine leads to the address of the server, and signs in there', async () => {
    const watched = await open(`${server.url.replace('127.0.0.1', 'localhost')}/#${await newToken('alice')}`);
    await signedInAs(watched, 'Alice');
    await watched.page.waitForURL(`${server.url}/c/${group.id}`);
    expect(watched.complaints).toEqual([]);
  });

  test('that was used says so, and another one works in the same tab', async () => {
    const token = await newToken('alice');
    await signedInAs(await open(`${server.url}/#${token}`), 'Alice');
    await profile!.close();
    const { page } = await open(`${server.url}/#${token}`);
    await page.getByText('This sign-in link was used, has expired, or never existed: ask for a new one').waitFor();
    await page.getByLabel('Paste the sign-in link').waitFor();
    // The browser does not load the page again if only the hash of its address changes.
    const another = await newToken('alice');
    await page.goto(`${server.url}/#${another}`);
    await page.getByText('Signed in as Alice').waitFor();
    expect(page.url()).not.toContain(another);
  });

  test('signs nobody out who is signed in: it takes a click', async () => {
    const watched = await open(`${server.url}/#${await newToken('alice')}`);
    await signedInAs(watched, 'Alice');
    const { page, complaints } = watched;
    // A change of the hash alone would load no page, so the test goes to another page first.
    await page.goto('about:blank');
    await page.goto(`${server.url}/#${await newToken('bob')}`);
    await signedInAs(watched, 'Alice');
    await page.getByRole('button', { name: 'Sign in with it instead' }).click();
    await signedInAs(watched, 'Bob');
    expect(complaints).toEqual([]);
  });
});

describe('a sign-in link that a person was sent', () => {
  test('has one button, so that a scanner which opens it does not use it up', async () => {
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'bob' });
    for (let opened = 0; opened < 2; opened += 1) {
      const { page } = await open(link);
      await page.getByRole('button', { name: 'Sign in with the link' }).waitFor();
      expect(page.url()).toBe(`${server.url}/`);
      if (opened === 0) await profile!.close();
      else {
        await page.getByRole('button', { name: 'Sign in with the link' }).click();
        await page.getByText('Signed in as Bob').waitFor();
      }
    }
  });

  test('can be pasted', async () => {
    const token = await newToken('bob');
    const { page } = await open(server.url);
    await page.getByLabel('Paste the sign-in link').fill('https://chat.example');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('This is not a sign-in link').waitFor();
    await page.getByLabel('Paste the sign-in link').fill(`${server.url}/v1/sign-in#kll_${'A'.repeat(43)}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('This sign-in link was used').waitFor();
    await page.getByLabel('Paste the sign-in link').fill('https://chat.example');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('This sign-in link was used').waitFor({ state: 'detached' });
    await page.getByLabel('Paste the sign-in link').fill(`${server.url}/v1/groups/invites/${'A'.repeat(43)}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('This invitation is no longer valid').waitFor();
    await page.getByLabel('Paste the sign-in link').fill(`${server.url}/v1/sign-in#${token}`);
    await page.getByLabel('Paste the sign-in link').press('Enter');
    await page.getByText('Signed in as Bob').waitFor();
  });
});

test('on another machine the printed address takes exactly one click', async () => {
  const far = await startServerForBrowsers({}, FAR_HOST);
  try {
    await far.operate('accounts.create', { nick: 'carol', name: 'Carol' });
    const { link } = await far.operate<{ link: string }>('accounts.invite', { user: 'carol' });
    const watched = await open(link.replace('/v1/sign-in', '/'));
    await watched.page.getByRole('button', { name: 'Sign in with the link' }).click();
    await signedInAs(watched, 'Carol');
    await watched.page.getByText('You are in no conversation yet').waitFor();
    expect(watched.complaints).toEqual([]);
    // The URL with the IP address is another origin than the URL with the name, so the server would refuse the session
    // there.
    await watched.page.goto(far.url);
    await watched.page.getByText('This is not the address of this server').waitFor();
  } finally {
    await far.stop();
  }
});

describe('a sign-out', () => {
  test('leaves nothing in the browser and ends the session everywhere', async () => {
    const watched = await open(`${server.url}/#${await newToken('alice')}`);
    await signedInAs(watched, 'Alice');
    const second = await WebBrowser.watch(profile!);
    await second.page.goto(server.url);
    await signedInAs(second, 'Alice');
    await watched.page.getByRole('button', { name: 'Sign out' }).click();
    await watched.page.getByLabel('Paste the sign-in link').waitFor();
    expect(await profile!.cookies()).toEqual([]);
    await eventually(
      () => watched.page.evaluate<unknown[]>('indexedDB.databases()'),
      (databases) => databases.length === 0,
    );
    expect(await profile!.storageState({ indexedDB: true })).toEqual({ cookies: [], origins: [] });
    // The server notifies the other tab over its live connection.
    await second.page.getByText('Your session has ended').waitFor();
    await watched.page.reload();
    await watched.page.getByLabel('Paste the sign-in link').waitFor();
    expect([...watched.complaints, ...second.complaints]).toEqual([]);
  });
});

describe('a page of somebody else', () => {
  let other: Server;
  let address: string;
  let html = '';
  beforeAll(async () => {
    other = createServer((_req, res) => res.setHeader('content-type', 'text/html').end(html));
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    address = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    other.close();
    other.closeAllConnections();
  });

  test('cannot show it in a frame', async () => {
    html = `<iframe src="${server.url}/"></iframe>`;
    const { page, complaints } = await open(address);
    await page.waitForLoadState();
    const frame = page.frames().at(-1)!;
    expect(await frame.locator('#app').count()).toBe(0);
    expect([...complaints, frame.url()].join('\n')).toMatch(FORBIDDEN_FRAME);
  });

  // Another port of the same host belongs to the same site: even with SameSite=Strict the browser sends the cookie.
  test('on another port sends the cookie of a visitor and gets nothing by it', async () => {
    const watched = await open(`${server.url}/#${await newToken('alice')}`);
    await signedInAs(watched, 'Alice');
    html = `<form method="post" enctype="text/plain" action="${server.url}/v1/api/sessions.end-others"></form>`;
    const { page } = await WebBrowser.watch(profile!);
    await page.goto(address);
    const [response] = await Promise.all([
      page.waitForResponse((each) => each.url().endsWith('sessions.end-others')),
      page.evaluate('document.querySelector("form").submit()'),
    ]);
    await page.waitForURL(/sessions\.end-others$/);
    expect(response.status()).toBe(403);
    expect(await response.request().headerValue('cookie')).toMatch(/klatch-/);
    await page.goto(address);
    const said = await page.evaluate(
      (url) =>
        new Promise<string>((resolve) => {
          const socket = new WebSocket(url);
          socket.addEventListener('close', ({ code }) => resolve(`closed ${code}`));
          socket.addEventListener('open', () => resolve('open'));
        }),
      server.liveUrl,
    );
    expect(said).toBe('closed 1006');
    const read = await page.evaluate(
      (url) =>
        fetch(url, { credentials: 'include' }).then(
          () => 'read',
          () => 'refused',
        ),
      `${server.url}/v1/session`,
    );
    expect(read).toBe('refused');
  });
});
