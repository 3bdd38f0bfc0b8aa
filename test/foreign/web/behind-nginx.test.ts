import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { BrowserContext } from 'playwright-core';
import { freePort } from '../../support/ports.ts';
import { postJson, type TestGroup, type TestServer } from '../../support/server.ts';
import { Nginx } from './nginx.ts';
import { FAR_HOST, startServerForBrowsers, WebBrowser } from './web-browser.ts';

let browser: WebBrowser;
let server: TestServer;
let nginx: Nginx;
let baseUri: string;
let group: TestGroup;
let profile: BrowserContext;

beforeAll(async () => {
  browser = await WebBrowser.start();
  const [port, proxyPort] = [await freePort(), await freePort()];
  baseUri = `https://${FAR_HOST}:${proxyPort}/team`;
  server = await startServerForBrowsers({ http: { port, baseUri } });
  nginx = await Nginx.start(FAR_HOST, proxyPort, port);
  await server.operate('accounts.create', { nick: 'alice', name: 'Alice' });
  group = await server.createGroup();
  await server.operate('groups.add-member', { group: group.id, user: 'alice' });
  profile = await browser.newProfile({ ignoreHTTPSErrors: true });
});
afterAll(async () => {
  await profile.close();
  await browser.stop();
  await nginx.stop();
  await server.stop();
});

test('below a path, with TLS, a link takes one click, and what is posted is seen at once', async () => {
  const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'alice' });
  expect(link.startsWith(`${baseUri}/v1/sign-in#`)).toBe(true);
  const { page, complaints } = await WebBrowser.watch(profile);
  await page.goto(link);
  await page.getByRole('button', { name: 'Sign in with the link' }).click();
  await page.getByText('Signed in as Alice').waitFor();
  await page.waitForURL(`${baseUri}/c/${group.id}`);
  expect(await page.evaluate('document.activeElement.localName')).toBe('textarea');

  const [cookie, ...others] = await profile.cookies();
  expect(others).toEqual([]);
  expect(cookie!.name).toMatch(/^__Secure-klatch-[0-9a-f]{8}$/);
  expect(cookie).toMatchObject({ path: '/team', secure: true, httpOnly: true, sameSite: 'Strict' });

  // The page gets this message over its live connection, which nginx has to forward.
  expect((await postJson(group.webhook, { text: 'through nginx' })).status).toBe(200);
  await page.getByRole('article').getByText('through nginx').waitFor();
  await page.getByRole('textbox').fill('and back');
  await page.keyboard.press('Enter');
  await page.getByRole('article').getByText('and back').waitFor();

  await page.reload();
  await page.getByRole('article').getByText('and back').waitFor();
  expect(page.url()).toBe(`${baseUri}/c/${group.id}`);

  await page.goto(`${baseUri}/settings/appearance`);
  await page.getByLabel('dark').check();
  await page.reload();
  expect(await page.getByLabel('dark').isChecked()).toBe(true);
  expect(await page.evaluate('Object.keys(localStorage)')).toEqual(['klatch/team/:appearance']);
  expect(complaints).toEqual([]);
});
