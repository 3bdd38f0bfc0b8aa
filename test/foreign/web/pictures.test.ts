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

let server: TestServer;
let browser: WebBrowser;
let folder = '';
const profiles: BrowserContext[] = [];
const complaints: (readonly string[])[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'klatch-pictures-'));
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
  await server.operate('accounts.create', { nick: 'alice', name: 'alice' });
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

/** Opens a page of a new group, in which each picture has a message of its own. */
async function openWith(title: string, pictures: Readonly<Record<string, Buffer>>): Promise<Page> {
  const { id } = await server.createGroup(title);
  await server.operate('groups.add-member', { group: id, user: 'alice' });
  const profile = await browser.newProfile();
  profiles.push(profile);
  const { page, complaints: own } = await openAs(server, profile, 'alice', `/c/${id}`);
  complaints.push(own);
  for (const [name, bytes] of Object.entries(pictures)) {
    await writeFile(join(folder, name), bytes);
    const [chooser] = await Promise.all([
      page.waitForEvent('filechooser'),
      page.getByRole('button', { name: 'Attach files' }).click(),
    ]);
    await chooser.setFiles(join(folder, name));
    await page.getByRole('button', { name: 'Send', disabled: false }).click();
    await pictureLink(page, name).waitFor();
  }
  return page;
}

const pictureLink = (page: Page, name: string) => page.getByRole('link', { name: `Open the picture ${name}` });

test('a picture opens in the whole window by a key, leads to the others, is enlarged and downloaded, and gives the focus back', async () => {
  const wide = pictureOf(1_000, 200);
  const page = await openWith('Viewer', {
    'one.png': pictureOf(10, 10),
    'two.png': wide,
    'three.png': pictureOf(30, 10),
  });
  const requested: string[] = [];
  page.on('request', (request) => requested.push(request.url()));
  await pictureLink(page, 'two.png').focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('heading', { name: 'two.png' }).waitFor();
  await dialog.getByText('Picture 2 of 3').waitFor();
  const image = dialog.getByRole('img');
  await eventually(
    () => image.evaluate((each) => (each as unknown as { naturalWidth: number }).naturalWidth),
    (width) => width === 1_000,
  );
  const whole = (await image.boundingBox())!;
  expect(Math.round(whole.width)).toBe(1_000);

  await page.keyboard.press('+');
  await eventually(
    () => image.boundingBox(),
    (box) => Math.round(box!.width) === 2_000,
  );
  const leftOf = () => dialog.locator('.viewer-canvas').evaluate((each) => each.scrollLeft);
  const before = await leftOf();
  await page.keyboard.press('ArrowRight');
  expect(await leftOf()).toBeGreaterThan(before);
  await dialog.getByText('Picture 2 of 3').waitFor();
  await page.keyboard.press('0');
  await eventually(
    () => image.boundingBox(),
    (box) => Math.round(box!.width) === 1_000,
  );

  const [downloaded] = await Promise.all([
    page.waitForEvent('download'),
    dialog.getByRole('link', { name: /Download/ }).click(),
  ]);
  expect(downloaded.suggestedFilename()).toBe('two.png');
  expect((await readFile(await downloaded.path())).equals(wide)).toBe(true);

  await page.keyboard.press('ArrowRight');
  await dialog.getByRole('heading', { name: 'three.png' }).waitFor();
  // There is no fourth picture, so this key does nothing.
  await page.keyboard.press('ArrowRight');
  for (const name of ['two.png', 'one.png', 'one.png']) {
    await page.keyboard.press('ArrowLeft');
    await dialog.getByRole('heading', { name }).waitFor();
  }
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('Open the picture two.png');
  // The browser loads the code of the viewer on its first use.
  expect(requested.filter((url) => url.includes('/assets/')).length).toBeGreaterThan(0);
});

test('a picture that cannot be loaded any more says so, and one whose link is opened in a tab stays a link', async () => {
  const page = await openWith('Broken', { 'gone.png': pictureOf(10, 10) });
  await pictureLink(page, 'gone.png').locator('img').waitFor();
  await page.route('**/v1/files/*', (route) => route.abort());
  await pictureLink(page, 'gone.png').click();
  await page.getByRole('dialog').getByText('The picture could not be loaded').waitFor();
  for (const each of complaints) (each as string[]).splice(0);
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.unroute('**/v1/files/*');
  await Promise.all([
    profiles[0]!.waitForEvent('page'),
    pictureLink(page, 'gone.png').click({ modifiers: ['Control'] }),
  ]);
  expect(await page.getByRole('dialog').count()).toBe(0);
});
