import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import type { TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

let server: TestServer;
let browser: WebBrowser;
let alice: TestPerson;
let home: number;
const profiles: BrowserContext[] = [];
const complaints: string[][] = [];

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
  alice = await createPerson(server, 'alice');
  for (const nick of ['bob', 'bobby']) await createPerson(server, nick);
  home = (await server.createGroup('Home')).id;
  for (const user of ['alice', 'bob']) await server.operate('groups.add-member', { group: home, user });
});
afterEach(async () => {
  for (const profile of profiles.splice(0)) await profile.close();
  expect(complaints.splice(0).flat()).toEqual([]);
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

/** Opens the dialog for new conversations. */
async function openNew(nick: string): Promise<{ page: Page; dialog: ReturnType<Page['getByRole']> }> {
  const profile = await browser.newProfile();
  profiles.push(profile);
  const { page, complaints: own } = await openAs(server, profile, nick, `/c/${home}`);
  complaints.push(own as string[]);
  return { page, dialog: await reopen(page) };
}

async function reopen(page: Page): Promise<ReturnType<Page['getByRole']>> {
  await page.getByRole('button', { name: 'New', exact: true }).click();
  return page.getByRole('dialog', { name: 'New conversation' });
}

const newGroup = (title: string, further: object = {}) =>
  callAs<{ id: number }>(server, alice, 'groups.create', { title, ...further });

test('public groups are listed in pages, found by their title, joined, and opened by their members', async () => {
  const { page, dialog } = await openNew('bob');
  await dialog.getByText('There is no public group yet.').waitFor();
  await page.keyboard.press('Escape');
  for (let at = 0; at < 22; at += 1) await newGroup(`Public ${at}`, { public: true });
  await newGroup(`Astronomy ${HOSTILE}`, { public: true, about: `Stars ${HOSTILE}` });
  await newGroup('Secret');
  await reopen(page);
  const found = dialog.locator('.found').last().getByRole('button');
  await eventually(
    () => found.count(),
    (count) => count === 20,
  );
  await dialog.getByRole('button', { name: 'Show more' }).click();
  await eventually(
    () => found.count(),
    (count) => count === 23,
  );
  await dialog.getByLabel('Find by title').fill('astro');
  await eventually(
    () => found.allInnerTexts(),
    (texts) => texts.length === 1 && /Stars <img.*1 member · Join/s.test(texts[0]!),
  );
  expect(await page.locator('#app img').count()).toBe(0);
  await found.click();
  await page.getByRole('heading', { name: `Astronomy ${HOSTILE}` }).waitFor();

  await reopen(page);
  await dialog.getByLabel('Find by title').fill('astro');
  await dialog.getByRole('button', { name: /Astronomy.*Open/s }).click();
  await page.getByRole('heading', { name: `Astronomy ${HOSTILE}` }).waitFor();
  // The heading was there before: without this wait, the next lines could fill in the dialog that is about to close.
  await dialog.waitFor({ state: 'hidden' });
  await reopen(page);
  await dialog.getByLabel('Find by title').fill('secret');
  await dialog.getByText('There is no such public group.').waitFor();
});

test('a pasted invitation shows its group before somebody joins, and says so when they are in it or it has ended', async () => {
  const { id } = await newGroup('Cellar', { about: 'Wine' });
  const made = await callAs<{ id: number; link: string }>(server, alice, 'invites.create', { group: id });
  const { page, dialog } = await openNew('bob');
  const paste = async (link: string): Promise<void> => {
    await dialog.getByLabel('Join by the link of an invitation').fill(link);
    await dialog.getByLabel('Join by the link of an invitation').press('Enter');
  };
  await paste('https://chat.example/cellar');
  await dialog.getByText('This is not the link of an invitation').waitFor();
  await paste(made.link);
  await dialog.getByRole('heading', { name: 'Cellar' }).waitFor();
  await dialog.getByText('Wine').waitFor();
  await dialog.getByRole('button', { name: 'Join the group' }).click();
  await page.getByRole('heading', { name: 'Cellar', level: 1 }).waitFor();

  await reopen(page);
  await paste(made.link);
  await dialog.getByRole('button', { name: 'Join the group' }).click();
  await dialog.getByText('You are in this group already.').waitFor();
  await dialog.getByRole('button', { name: 'Open the group' }).click();
  await dialog.waitFor({ state: 'detached' });

  await callAs(server, alice, 'invites.revoke', { group: id, invite: made.id });
  await reopen(page);
  await paste(made.link);
  await dialog.getByText('This invitation is no longer valid, or never existed: ask for a new one').waitFor();
  await dialog.getByText('Ask whoever sent you the link for a new one.').waitFor();
  for (const each of complaints) each.splice(0);
});

test('a group begins with what it is for, and somebody is found by a part of the nick', async () => {
  const { page, dialog } = await openNew('bob');
  await dialog.getByLabel('Create a group').fill('Orchard');
  await dialog.getByLabel('What it is for').fill('Apples');
  await dialog.getByLabel('Everybody with an account can find and join it').check();
  await dialog.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'Orchard' }).waitFor();
  const { groups } = await callAs<{ groups: object[] }>(server, alice, 'groups.find', { text: 'orchard' });
  expect(groups).toMatchObject([{ title: 'Orchard', about: 'Apples', members: 1, joined: false }]);

  await reopen(page);
  await dialog.getByLabel('Write to somebody').fill('bobb');
  await dialog.getByRole('button', { name: 'bobby (@bobby)' }).click();
  await page.getByRole('heading', { name: 'bobby' }).waitFor();
});
