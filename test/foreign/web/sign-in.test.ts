import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { createStartingApp } from '../../../src/http/app.ts';
import { silentLog } from '../../../src/log.ts';
import { testConfig } from '../../support/config.ts';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGate } from '../../support/gate.ts';
import { TestMailServer } from '../../support/mail-server.ts';
import { freePort } from '../../support/ports.ts';
import type { TestServer } from '../../support/server.ts';
import { startServerForBrowsers, WebBrowser, type WatchedPage } from './web-browser.ts';

/**
 * Matches the complaint about a request that the server refuses, or that finds no network. These tests cause such
 * requests.
 */
const REFUSED_REQUEST = /^Failed to load resource/;
const NICK = 'Nick, by which others mention you';
const LIMITS = { codesPerSourcePerHour: 1_000, dailyCodesPerAddressAndNetwork: 1_000, codesPerHourPerBudget: 1_000 };

let mail: TestMailServer;
let server: TestServer;
let browser: WebBrowser;
const profiles: BrowserContext[] = [];
const complaints: (readonly string[])[] = [];

beforeAll(async () => {
  browser = await WebBrowser.start();
  mail = await TestMailServer.start();
  server = await startServerForBrowsers({ registration: 'invite', smtp: mail.config(), limits: LIMITS });
  for (const nick of ['alice', 'bob', 'carol']) {
    await server.operate('accounts.create', { nick, name: nick });
    await server.operate('accounts.update', { user: nick, address: `${nick}@example.org` });
  }
});
afterEach(async () => {
  for (const profile of profiles.splice(0)) await profile.close();
  const others = complaints.splice(0).flat();
  expect(others.filter((each) => !REFUSED_REQUEST.test(each))).toEqual([]);
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
  await mail.stop();
});

async function open(address = server.url): Promise<WatchedPage & { profile: BrowserContext }> {
  const profile = await browser.newProfile();
  profiles.push(profile);
  const watched = await WebBrowser.watch(profile);
  complaints.push(watched.complaints);
  await watched.page.goto(address);
  return { ...watched, profile };
}

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name });
const alerted = (page: Page, hasText: string | RegExp) => page.getByRole('alert').filter({ hasText }).waitFor();
/** The label of the field with the focus, and why its text was refused, as a screen reader says them. */
const focused = (page: Page) =>
  page.evaluate<{ label: string; autocomplete: string; description: string }>(`(() => {
    const field = document.activeElement;
    const ids = (field.getAttribute('aria-describedby') ?? '').split(' ').filter((id) => id !== '');
    return {
      label: field.labels?.[0]?.textContent ?? '',
      autocomplete: field.autocomplete,
      description: ids.map((id) => document.getElementById(id).textContent).join(' '),
    };
  })()`);
const untilFocused = (page: Page, label: string) =>
  eventually(
    () => focused(page),
    (field) => field.label === label,
  );
/** Makes the codes of an address a minute older, so that another one may be requested. */
const passMinute = (address: string) =>
  server.database.query(
    (sql) => sql`update activation set sent_at = sent_at - interval '1 minute' where address = ${address}`,
  );

async function askForCode(page: Page, address: string): Promise<string> {
  mail.letters.splice(0);
  await page.getByLabel('E-mail address').fill(address);
  await button(page, 'Send a code').click();
  await page.getByLabel('Code of six digits').waitFor();
  return mail.codeTo(address);
}

describe('a code by mail', () => {
  test('signs somebody in by the keyboard alone, and leaves no secret in the page', async () => {
    const { page, profile } = await open();
    expect(await untilFocused(page, 'E-mail address')).toMatchObject({ autocomplete: 'email' });
    await page.keyboard.type('Alice@Example.org');
    await page.keyboard.press('Enter');
    expect(await untilFocused(page, 'Code of six digits')).toMatchObject({ autocomplete: 'one-time-code' });
    const code = await mail.codeTo('alice@example.org');
    await page.keyboard.type(`${code.slice(0, 3)} ${code.slice(3)}`);
    await page.keyboard.press('Enter');
    await page.getByText('Signed in as alice').waitFor();
    const [cookie, ...others] = await profile.cookies();
    expect([cookie?.httpOnly, cookie?.sameSite, others]).toEqual([true, 'Strict', []]);
    expect(await page.evaluate('({ ...localStorage, ...sessionStorage })')).toEqual({});
    expect(await page.evaluate('[location.pathname, location.hash, history.state]')).toEqual(['/', '', null]);
    expect(await page.content()).not.toMatch(new RegExp(`${code}|kl[sl]_`));
  });

  test('that is wrong says how many attempts are left, and after the last one another code can be sent', async () => {
    const { page } = await open();
    const code = await askForCode(page, 'bob@example.org');
    const wrong = code === '000000' ? '000001' : '000000';
    for (const said of [/attempts left: 2/, /attempts left: 1/]) {
      await page.getByLabel('Code of six digits').fill(wrong);
      await page.keyboard.press('Enter');
      await alerted(page, said);
      expect((await untilFocused(page, 'Code of six digits')).description).toMatch(said);
    }
    await page.getByLabel('Code of six digits').fill(wrong);
    await page.keyboard.press('Enter');
    await alerted(page, 'this was the last attempt');
    expect(await page.getByLabel('Code of six digits').count()).toBe(0);
    // The button that sends another code has the focus.
    expect(await page.evaluate('document.activeElement.textContent')).toMatch(/^Send another code/);
  });

  test('can be sent again after a minute, which the page counts down', async () => {
    const profile = await browser.newProfile();
    profiles.push(profile);
    const { page } = await WebBrowser.watch(profile);
    await page.clock.install();
    await page.goto(server.url);
    const first = await askForCode(page, 'carol@example.org');
    const resend = button(page, /^Send another code/);
    const seconds = Number(/in (\d+) s/.exec((await resend.textContent())!)![1]);
    expect(seconds).toBeGreaterThan(30);
    expect(seconds).toBeLessThanOrEqual(60);
    await resend.press('Enter');
    expect(mail.letters).toHaveLength(1);

    await page.clock.fastForward(61_000);
    await eventually(
      () => resend.textContent(),
      (text) => text === 'Send another code',
    );
    mail.letters.splice(0);
    // Only the clock of the page has moved. The server still refuses another code, and says for how long.
    await resend.click();
    await alerted(page, /another one can be sent in \d+ s/);
    await passMinute('carol@example.org');
    await resend.click();
    await page.getByText('Another code was asked for.').waitFor();
    const second = await mail.codeTo('carol@example.org');
    await untilFocused(page, 'Code of six digits');
    if (first !== second) {
      await page.keyboard.type(first);
      await page.keyboard.press('Enter');
      await alerted(page, 'attempts left: 2');
    }
    await page.getByLabel('Code of six digits').fill(second);
    await page.keyboard.press('Enter');
    await page.getByText('Signed in as carol').waitFor();
  });

  test('that has expired, and one of a deactivated account, say so', async () => {
    const { page } = await open();
    await server.operate('accounts.create', { nick: 'dan', name: 'dan' });
    await server.operate('accounts.update', { user: 'dan', address: 'dan@example.org' });
    const code = await askForCode(page, 'dan@example.org');
    await server.operate('accounts.deactivate', { user: 'dan' });
    await page.getByLabel('Code of six digits').fill(code);
    await page.keyboard.press('Enter');
    await alerted(page, 'This account is deactivated');
    await server.database.query((sql) => sql`update activation set expires_at = now()`);
    await page.keyboard.press('Enter');
    await alerted(page, 'This sign-in has expired');
    expect(await page.getByLabel('Code of six digits').count()).toBe(0);
    await button(page, 'Use another address').click();
    await untilFocused(page, 'E-mail address');
  });

  test('goes to no address that is nobody’s, and the page does not tell which are', async () => {
    const { page } = await open();
    mail.letters.splice(0);
    await page.getByLabel('E-mail address').fill('nobody@example.org');
    await page.keyboard.press('Enter');
    await page.getByText('If nobody@example.org can be used here').waitFor();
    await page.getByText('An address without an account gets a code only with an invitation.').waitFor();
    const [row] = await server.database.query(
      (sql) => sql<{ sent: number }[]>`
        select count(*)::int as sent from activation where address = 'nobody@example.org' and sends_code`,
    );
    expect([row!.sent, mail.letters]).toEqual([0, []]);
  });
});

test('without a network the page says so, and keeps what was typed', async () => {
  const { page, profile } = await open();
  await page.getByLabel('E-mail address').fill('bob@example.org');
  await passMinute('bob@example.org');
  await profile.setOffline(true);
  await page.keyboard.press('Enter');
  await alerted(page, 'There is no connection to the server');
  await profile.setOffline(false);
  await button(page, 'Send a code').click();
  await page.getByLabel('Code of six digits').waitFor();
});

describe('the ways that a server does not offer', () => {
  test('are not shown: with a gate alone a code goes to a telephone', async () => {
    const gate = await TestGate.start();
    const other = await startServerForBrowsers({ registration: 'open', activation: gate.config, limits: LIMITS });
    try {
      const { page, profile } = await open(other.url);
      expect(await untilFocused(page, 'Telephone number')).toMatchObject({ autocomplete: 'tel' });
      await page.keyboard.type('0170 1234567');
      await page.keyboard.press('Enter');
      await alerted(page, 'with + and the code of its country');
      await page.getByLabel('Telephone number').fill('+49 170 1234567');
      await page.keyboard.press('Enter');
      await untilFocused(page, 'Code of six digits');
      await page.keyboard.type(await gate.codeOf(491701234567));
      await page.keyboard.press('Enter');
      await untilFocused(page, NICK);
      await page.keyboard.type('erin');
      await page.keyboard.press('Enter');
      await page.getByText('Signed in as erin').waitFor();
      // The page is closed before its server stops: an open page would report refused connections as errors.
      await profile.close();
    } finally {
      await other.stop();
      await gate.stop();
    }
  });
});

describe('an invitation', () => {
  test('leads from its page through the sign-up into the group', async () => {
    const group = await server.createGroup('Operations <b>');
    const { link } = await server.operate<{ link: string }>('invites.create', { group: group.id });
    const token = link.split('/').at(-1)!;
    const { page } = await open(`${server.url}/v1/groups/invites/${token}`);
    await page.getByRole('link', { name: 'Join in this browser' }).click();
    await page.getByText('You are invited to the group “Operations <b>”').waitFor();
    expect(page.url()).toBe(`${server.url}/`);
    expect(await page.content()).not.toContain(token);
    const code = await askForCode(page, 'frank@example.org');
    await page.getByLabel('Code of six digits').fill(code);
    await page.keyboard.press('Enter');
    await page.getByText('frank@example.org has no account here yet').waitFor();
    await page.getByLabel(NICK).fill('alice');
    await page.keyboard.press('Enter');
    await alerted(page, 'This nick is taken');
    expect((await untilFocused(page, NICK)).description).toMatch('taken');
    await page.getByLabel(NICK).fill('-frank');
    await page.keyboard.press('Enter');
    await alerted(page, 'A nick has 1 to 32 letters');
    await page.getByLabel(NICK).fill('frank');
    await page.getByLabel('Name (optional)').fill('Frank');
    await button(page, 'Create the account').click();
    await page.getByText('Signed in as Frank (@frank)').waitFor();
    await page.getByRole('heading', { name: 'Operations <b>' }).waitFor();
  });

  test('is pasted where it did not open the page, and joined by somebody who has an account', async () => {
    const group = await server.createGroup('Pasted');
    const { link } = await server.operate<{ link: string }>('invites.create', { group: group.id });
    const { page } = await open();
    await page.getByText('I have an invitation').click();
    await page.getByLabel('Link of the invitation').fill(`${link}x`);
    await passMinute('bob@example.org');
    await page.getByLabel('E-mail address').fill('bob@example.org');
    await button(page, 'Send a code').click();
    await alerted(page, 'This invitation is no longer valid');
    await page.getByLabel('Link of the invitation').fill(link);
    const code = await askForCode(page, 'bob@example.org');
    await page.getByLabel('Code of six digits').fill(code);
    await page.keyboard.press('Enter');
    await page.getByText('You are invited to the group “Pasted”').waitFor();
    await button(page, 'Join').click();
    await page.waitForURL(`${server.url}/c/${group.id}`);
    await page.getByRole('heading', { name: 'Pasted' }).waitFor();
  });

  test('that has expired says so to everybody, signed in or not', async () => {
    const address = `${server.url}/join#${'A'.repeat(43)}`;
    const { page, profile } = await open(address);
    await alerted(page, 'This invitation is no longer valid, or never existed: ask for a new one');
    await page.getByLabel('E-mail address').waitFor();
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'alice' });
    // A change of the hash alone would load no page, so the test goes to another page first.
    await page.goto('about:blank');
    await page.goto(`${server.url}/#${link.split('#')[1]!}`);
    await page.getByText('Signed in as alice').waitFor();
    const second = await WebBrowser.watch(profile);
    await second.page.goto(address);
    await alerted(second.page, 'This invitation is no longer valid');
    expect(await button(second.page, 'Join').count()).toBe(0);
    await button(second.page, 'Not now').click();
    await second.page.getByText('Signed in as alice').waitFor();
  });
});

describe('where the server sends no codes, an invitation', () => {
  let other: TestServer;
  beforeAll(async () => {
    other = await startServerForBrowsers({ registration: 'invite' });
  });
  afterAll(async () => other.stop());

  const createInvite = async (more: object = {}): Promise<string> => {
    const group = await other.createGroup('Open house');
    return (await other.operate<{ link: string }>('invites.create', { group: group.id, ...more })).link;
  };

  test('creates the account that joins, and a sign-out says what it loses', async () => {
    const { page, profile } = await open(new URL(new URL(await createInvite()).pathname, other.url).href);
    await page.getByRole('link', { name: 'Join in this browser' }).click();
    await page.getByText('You are invited to the group “Open house”').waitFor();
    await untilFocused(page, NICK);
    await page.keyboard.type('gina');
    await page.keyboard.press('Enter');
    await page.getByText('Signed in as gina').waitFor();
    await page.getByRole('heading', { name: 'Open house' }).waitFor();
    await button(page, 'Sign out').click();
    const question = page.getByRole('dialog', { name: 'Sign out?' });
    await question.getByText('is signed in nowhere else').waitFor();
    await question.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Paste the sign-in link or the invitation').waitFor();
    await profile.close();
  });

  test('is pasted where it did not open the page; one that is used up says so', async () => {
    const link = await createInvite({ max_uses: 1 });
    const { page, profile } = await open(other.url);
    await page.getByLabel('Paste the sign-in link or the invitation').fill(link);
    await page.keyboard.press('Enter');
    await page.getByText('You are invited to the group “Open house”').waitFor();
    await page.getByLabel(NICK).fill('hugo');
    await callAs(other, null, 'auth.sign-up', { nick: 'faster', invite: link });
    await button(page, 'Create the account').click();
    await alerted(page, 'This invitation is no longer valid');
    await page.getByLabel('Paste the sign-in link or the invitation').waitFor();
    await profile.close();
  });
});

test('while the server starts the page says so, and continues when the server has started', async () => {
  const port = await freePort();
  const baseUri = `http://127.0.0.1:${port}`;
  const target = { ...server.database.target };
  const starting: Server = createServer(
    createStartingApp(testConfig(target, '/nonexistent', { http: { baseUri } }), silentLog()),
  );
  starting.listen(port, '127.0.0.1');
  await once(starting, 'listening');
  const { page } = await open(baseUri);
  await page.getByRole('heading', { name: 'The server is starting' }).waitFor();
  await page.getByText(/Trying again in \d+ s\.|Trying again …/).waitFor();
  starting.close();
  starting.closeAllConnections();
  await once(starting, 'close');
  const started = await startServerForBrowsers({ http: { port, baseUri } });
  try {
    const isShown = page.getByLabel('Paste the sign-in link').waitFor();
    // If the page tries by itself before the click, the button is gone and the click fails.
    const isClicked = button(page, 'Try now').click();
    isClicked.catch(() => {});
    await Promise.race([isClicked, isShown]);
    await isShown;
  } finally {
    await started.stop();
  }
});
