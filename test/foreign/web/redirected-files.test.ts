import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { S3Server } from '../../files/s3-server.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

/** A GIF picture of one pixel. */
const GIF = Buffer.from('R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=', 'base64');

let bucket: S3Server;
let server: TestServer;
let browser: WebBrowser;

beforeAll(async () => {
  browser = await WebBrowser.start();
  bucket = await S3Server.start();
  server = await startServerForBrowsers({ files: { s3: bucket.config({ downloads: 'redirect' }) } });
  await server.operate('accounts.create', { nick: 'alice', name: 'alice' });
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
  await bucket.stop();
});

test('pictures and files come from the bucket where downloads are redirected to it', async () => {
  const { id } = await server.createGroup('Bucket');
  await server.operate('groups.add-member', { group: id, user: 'alice' });
  const { page, complaints } = await openAs(server, await browser.newProfile(), 'alice', `/c/${id}`);
  const [chooser] = await Promise.all([
    page.waitForEvent('filechooser'),
    page.getByRole('button', { name: 'Attach files' }).click(),
  ]);
  await chooser.setFiles([
    { name: 'dot.gif', mimeType: 'image/gif', buffer: GIF },
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('from the bucket') },
  ]);
  await page.getByRole('button', { name: 'Send', disabled: false }).click();
  await eventually(
    () => page.evaluate('document.querySelector(".picture img")?.naturalWidth'),
    (width) => width === 1,
  );
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page
      .getByRole('article')
      .getByRole('link', { name: /notes\.txt/ })
      .click(),
  ]);
  expect((await readFile(await download.path())).toString()).toBe('from the bucket');
  // The page still shows the conversation: the download has not replaced it.
  await page.getByRole('textbox').waitFor();
  expect(bucket.requests.some((each) => each.startsWith('GET') && each.includes('X-Amz-Signature'))).toBe(true);
  expect(complaints).toEqual([]);
});
