import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { noise, uploaded } from '../../http/files-fixture.ts';
import { callAs } from '../../support/call.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import type { TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

let server: TestServer;
let browser: WebBrowser;
let alice: TestPerson;
let group: number;
const profiles: BrowserContext[] = [];
const complaints: string[][] = [];

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers({ limits: { storagePerUserBytes: 1024 * 1024 } });
  group = (await server.createGroup('Files')).id;
  alice = await createPerson(server, 'alice');
  await createPerson(server, 'bob');
  for (const user of ['alice', 'bob']) await server.operate('groups.add-member', { group, user });
});
afterEach(async () => {
  for (const profile of profiles.splice(0)) await profile.close();
  expect(complaints.splice(0).flat()).toEqual([]);
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

/** Opens the dialog with the files of the person. */
async function openFiles(nick: string): Promise<{ page: Page; dialog: ReturnType<Page['getByRole']> }> {
  const profile = await browser.newProfile();
  profiles.push(profile);
  const { page, complaints: own } = await openAs(server, profile, nick, `/c/${group}`);
  complaints.push(own as string[]);
  await page.getByRole('button', { name: 'My files' }).click();
  return { page, dialog: page.getByRole('dialog', { name: 'My files' }) };
}

test('somebody without files is told so, and a list that cannot be read is read again', async () => {
  const { page, dialog } = await openFiles('bob');
  await dialog.getByText('You have not uploaded a file yet.').waitFor();
  await dialog.getByText('0 B of 1.0 MiB in 0 files').waitFor();
  await page.keyboard.press('Escape');
  await page.route('**/v1/api/files.list', (route) => route.abort());
  await page.getByRole('button', { name: 'My files' }).click();
  await dialog.getByRole('alert').getByText('there is no connection to the server').waitFor();
  await page.unroute('**/v1/api/files.list');
  await dialog.getByRole('button', { name: 'Try again' }).click();
  await dialog.getByText('You have not uploaded a file yet.').waitFor();
  for (const each of complaints) each.splice(0);
});

test('the own files are listed in pages with what they take; one in no message is removed, one of a message is found', async () => {
  const older = await uploaded(server, alice, noise(1_024), 'oldest.txt');
  await callAs(server, alice, 'messages.send', { conversation: group, text: 'the oldest', files: [older.id] });
  for (let at = 0; at < 49; at += 1) await uploaded(server, alice, noise(1_024), `file ${at}.txt`);
  await uploaded(server, alice, noise(1_024), `${HOSTILE}.txt`);
  const { page, dialog } = await openFiles('alice');
  await dialog.getByText('51 KiB of 1.0 MiB in 51 files').waitFor();
  expect(await dialog.getByRole('listitem').count()).toBe(50);
  expect(await page.locator('#app img').count()).toBe(0);
  await dialog.getByRole('button', { name: 'Show more' }).click();
  await dialog.getByText('oldest.txt').waitFor();
  expect(await dialog.getByRole('button', { name: 'Show more' }).count()).toBe(0);

  const hostile = dialog.getByRole('listitem').filter({ hasText: 'onerror' });
  await hostile.getByText('in no message').waitFor();
  await hostile.getByRole('button', { name: 'Remove' }).click();
  await hostile.getByText('will be gone for good').waitFor();
  await hostile.getByRole('group').getByRole('button', { name: 'Remove' }).click();
  await hostile.waitFor({ state: 'detached' });
  await dialog.getByText('50 KiB of 1.0 MiB in 50 files').waitFor();
  expect(await dialog.getByRole('listitem').count()).toBe(50);
  const { usage } = await callAs<{ usage: { files: number } }>(server, alice, 'files.list');
  expect(usage.files).toBe(50);

  const attached = dialog.getByRole('listitem').filter({ hasText: 'oldest.txt' });
  expect(await attached.getByRole('button', { name: 'Remove' }).count()).toBe(0);
  await attached.getByRole('button', { name: 'Show the message' }).click();
  await page.waitForURL(`${server.url}/c/${group}/1`);
  await page.getByRole('article').getByText('the oldest').waitFor();
});
