import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { eventually } from '../../support/eventually.ts';
import type { TestServer } from '../../support/server.ts';
import { pictureOf } from './png.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

/** Gives a text file to the page, as a browser does after a paste or a drop. */
const HAND_OVER = `({ kind, name, text }) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type: 'text/plain' }));
  const field = document.querySelector('textarea');
  if (kind === 'paste') field.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
  else for (const type of ['dragover', 'drop']) field.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
}`;

let server: TestServer;
let browser: WebBrowser;
let folder = '';
const profiles: BrowserContext[] = [];
const complaints: (readonly string[])[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'klatch-attached-'));
  browser = await WebBrowser.start();
  server = await startServerForBrowsers({ limits: { fileBytes: 12_000_000 } });
  for (const nick of ['alice', 'bob']) await server.operate('accounts.create', { nick, name: nick });
});
afterEach(async () => {
  for (const profile of profiles.splice(0)) await profile.close();
  expect(complaints.splice(0).flat()).toEqual([]);
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
  await rm(folder, { recursive: true });
});

async function newGroup(title: string): Promise<number> {
  const { id } = await server.createGroup(title);
  for (const user of ['alice', 'bob']) await server.operate('groups.add-member', { group: id, user });
  return id;
}

async function open(nick: string, path: string): Promise<Page> {
  const profile = await browser.newProfile();
  profiles.push(profile);
  const { page, complaints: own } = await openAs(server, profile, nick, path);
  complaints.push(own);
  return page;
}

async function choose(page: Page, files: Readonly<Record<string, Buffer | string>>): Promise<void> {
  const paths: string[] = [];
  for (const [name, bytes] of Object.entries(files)) {
    paths.push(join(folder, name));
    await writeFile(paths.at(-1)!, bytes);
  }
  const [chooser] = await Promise.all([
    page.waitForEvent('filechooser'),
    page.getByRole('button', { name: 'Attach files' }).click(),
  ]);
  await chooser.setFiles(paths);
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** Downloads a file by its link in the page; resolves with its bytes. */
async function download(page: Page, name: RegExp): Promise<Buffer> {
  const [downloaded] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('article').getByRole('link', { name }).last().click(),
  ]);
  return readFile(await downloaded.path());
}

test('files are attached by the button, by paste and by drop, and others see pictures in place and get the rest', async () => {
  const group = await newGroup('Files');
  const [alice, bob] = [await open('alice', `/c/${group}`), await open('bob', `/c/${group}`)];
  const name = '<img src=x onerror=alert(1)> report.txt';
  await choose(alice, { [name]: 'the report', 'square.png': pictureOf(8, 8) });
  await alice.evaluate(`(${HAND_OVER})(${JSON.stringify({ kind: 'paste', name: 'pasted.txt', text: 'p' })})`);
  await alice.evaluate(`(${HAND_OVER})(${JSON.stringify({ kind: 'drop', name: 'dropped.txt', text: 'd' })})`);
  await eventually(
    () => alice.locator('.attached li').count(),
    (count) => count === 4,
  );
  await alice.getByRole('textbox').fill('with files');
  await alice.getByRole('button', { name: 'Send' }).click();
  for (const page of [alice, bob]) {
    const article = page.getByRole('article').filter({ hasText: 'with files' });
    await article.getByRole('link', { name: /pasted\.txt/ }).waitFor();
    await article.getByRole('link', { name: /dropped\.txt/ }).waitFor();
    await article.getByRole('link', { name: 'Open the picture square.png' }).waitFor();
  }
  expect(await alice.locator('.attached li').count()).toBe(0);
  await eventually(
    () => bob.evaluate('document.querySelector(".picture img").naturalWidth'),
    (width) => width === 8,
  );
  expect(await bob.locator('img').count()).toBe(1);
  expect((await download(bob, /report\.txt/)).toString()).toBe('the report');

  // A message may consist of files alone.
  await choose(bob, { 'alone.txt': 'alone' });
  await bob.getByRole('button', { name: 'Send' }).click();
  await alice
    .getByRole('article')
    .getByRole('link', { name: /alone\.txt/ })
    .waitFor();
});

test('a picture has its place before it is loaded, and none that is large is loaded', async () => {
  const group = await newGroup('Pictures');
  const page = await open('alice', `/c/${group}`);
  const [inPlace, large] = [pictureOf(800, 400), pictureOf(1_600, 1_400)];
  expect(large.length).toBeGreaterThan(2 * 1024 * 1024);
  await choose(page, { 'in-place.png': inPlace, 'large.png': large });
  await page.getByRole('button', { name: 'Send', disabled: false }).click();
  await page
    .getByRole('article')
    .getByRole('link', { name: /large\.png/ })
    .waitFor();
  // The bytes of the picture never arrive.
  await page.route('**/v1/files/*', () => {});
  await page.reload();
  const picture = page.locator('.feed img');
  await picture.waitFor();
  const { width, height } = (await picture.boundingBox())!;
  expect([width, height, await picture.count()]).toEqual([400, 200, 1]);
});

test('a large file continues after a cut connection, is cancelled, and one that is too large is refused before', async () => {
  const group = await newGroup('Large');
  const page = await open('alice', `/c/${group}`);
  const bytes = randomBytes(6_000_000);
  let cuts = 0;
  await page.route('**/v1/files/uploads/*', async (route) => {
    if (route.request().method() === 'PATCH' && cuts < 1) {
      cuts += 1;
      await route.abort('connectionreset');
    } else await route.continue();
  });
  await choose(page, { 'large.bin': bytes, 'too-large.bin': Buffer.alloc(12_000_001) });
  await page.getByText('The file is larger than 11 MiB').waitFor();
  expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Remove too-large.bin' }).click();
  await page.locator('.attached progress').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Send' }).click();
  expect(sha256(await download(page, /large\.bin/))).toBe(sha256(bytes));
  expect(cuts).toBe(1);
  // The browser complains about the request that was cut, as it should.
  for (const each of complaints) (each as string[]).splice(0);

  await page.route('**/v1/files?*', () => {});
  await choose(page, { 'cancelled.txt': 'x' });
  await page.getByRole('progressbar', { name: 'cancelled.txt is being uploaded' }).waitFor();
  await page.getByRole('button', { name: 'Remove cancelled.txt' }).click();
  expect(await page.locator('.attached li').count()).toBe(0);
});

test('a large file whose upload failed continues its upload when it is tried again', async () => {
  const group = await newGroup('Continued');
  const page = await open('alice', `/c/${group}`);
  const bytes = randomBytes(6_000_000);
  const methods: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/v1/files/uploads')) methods.push(request.method());
  });
  await page.route('**/v1/files/uploads/*', (route) =>
    route.fulfill({ status: 403, json: { status: 'failure', code: 'too_many_uploads', message: 'Not now, please' } }),
  );
  await choose(page, { 'continued.bin': bytes });
  await page.getByText('Not now, please').waitFor();
  for (const each of complaints) (each as string[]).splice(0);
  await page.unroute('**/v1/files/uploads/*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.locator('.attached progress').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Send' }).click();
  expect(sha256(await download(page, /continued\.bin/))).toBe(sha256(bytes));
  expect(methods).toEqual(['POST', 'PATCH', 'HEAD', 'PATCH']);
});

test('a file that the server refuses keeps its place, says why, and is uploaded again', async () => {
  const group = await newGroup('Refused');
  const page = await open('alice', `/c/${group}`);
  await page.route('**/v1/files?*', (route) =>
    route.fulfill({
      status: 507,
      json: { status: 'failure', code: 'storage_full', message: 'The store of the files is full' },
    }),
  );
  await choose(page, { 'a.txt': 'a' });
  await page.getByText('The store of the files is full').waitFor();
  for (const each of complaints) (each as string[]).splice(0);
  await page.unroute('**/v1/files?*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.locator('.attached progress').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Send' }).click();
  await page
    .getByRole('article')
    .getByRole('link', { name: /a\.txt/ })
    .waitFor();
});
