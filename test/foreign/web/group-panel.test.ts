import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import jsqr from 'jsqr';
import type { BrowserContext, Page } from 'playwright-core';
import { eventually } from '../../support/eventually.ts';
import type { TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

/** Returns the pixels of the QR code as a camera sees them: the element of the page, drawn into a canvas. */
const DRAW_QR_CODE = `(async () => {
  const svg = document.querySelector('.qr-code').cloneNode(true);
  const side = 400;
  for (const name of ['width', 'height']) svg.setAttribute(name, String(side));
  const url = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(svg)], { type: 'image/svg+xml' }));
  const image = new Image();
  image.src = url;
  await image.decode();
  const context = Object.assign(document.createElement('canvas'), { width: side, height: side }).getContext('2d');
  context.drawImage(image, 0, 0);
  return { data: [...context.getImageData(0, 0, side, side).data], side };
})()`;

let server: TestServer;
let browser: WebBrowser;
const profiles: BrowserContext[] = [];
const complaints: string[][] = [];

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers({ registration: 'closed' });
  for (const nick of ['alice', 'bob', 'carol'])
    await server.operate('accounts.create', { nick, name: `${nick} ${HOSTILE}` });
});
afterEach(async () => {
  for (const profile of profiles.splice(0)) await profile.close();
  expect(complaints.splice(0).flat()).toEqual([]);
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

/** Creates a group that alice owns and that bob is a member of. */
async function newGroup(title: string): Promise<number> {
  const { id } = await server.createGroup(title);
  for (const user of ['alice', 'bob']) await server.operate('groups.add-member', { group: id, user });
  await server.operate('groups.transfer', { group: id, user: 'alice' });
  return id;
}

async function open(nick: string, group: number): Promise<Page> {
  const profile = await browser.newProfile();
  profiles.push(profile);
  const watched = await openAs(server, profile, nick, `/c/${group}`);
  complaints.push(watched.complaints as string[]);
  return watched.page;
}

const details = async (page: Page) => {
  await page.getByRole('button', { name: 'Details' }).click();
  const panel = page.locator('dialog.drawer');
  await panel.getByRole('heading', { name: 'Notifications' }).waitFor();
  return panel;
};

/** Opens the card of a member over the panel. */
const cardOf = async (page: Page, nick: string) => {
  await page
    .locator('dialog.drawer')
    .getByRole('button', { name: `@${nick}` })
    .click();
  const card = page.locator('dialog:not(.drawer)');
  await card.getByText(/account since/).waitFor();
  return card;
};

interface Listed {
  readonly members: readonly { nick: string; role: string }[];
}
/** Resolves when the members of the group have the expected roles. */
const haveRoles = (group: number, expected: Readonly<Record<string, string>>) =>
  eventually(
    async () => {
      const { members } = await server.operate<Listed>('groups.members', { group });
      return Object.fromEntries(members.map(({ nick, role }) => [nick, role]));
    },
    (roles) => JSON.stringify(roles) === JSON.stringify(expected),
  );

test('an owner adds, promotes and removes members, and hands the group over; each sees what the role allows', async () => {
  const group = await newGroup('Roles');
  const [alice, bob] = [await open('alice', group), await open('bob', group)];
  const panel = await details(alice);
  await panel.getByText('You own this group.').waitFor();
  await panel.getByLabel('Add somebody').fill('car');
  await panel.getByRole('button', { name: /^Add carol/ }).click();
  await haveRoles(group, { alice: 'owner', bob: 'member', carol: 'member' });
  const carol = panel.getByRole('listitem').filter({ hasText: '@carol' });
  await carol.getByRole('img', { name: 'not online' }).waitFor();
  await open('carol', group);
  await carol.getByRole('img', { name: 'online', exact: true }).waitFor();
  expect(await panel.locator('img').count()).toBe(0);
  await panel
    .getByRole('listitem')
    .filter({ hasText: '@bob' })
    .getByRole('img', { name: 'online', exact: true })
    .waitFor();

  const card = await cardOf(alice, 'bob');
  await card.getByRole('button', { name: 'Make admin' }).click();
  await haveRoles(group, { alice: 'owner', bob: 'admin', carol: 'member' });
  await card.getByText('admin of this group').waitFor();
  await alice.keyboard.press('Escape');

  // An admin can remove members, but cannot hand the group over. The panel of bob learns of his new role by a notice.
  const ofBob = await details(bob);
  await ofBob.getByText('Add somebody').waitFor();
  expect(await ofBob.getByRole('button', { name: 'Archive' }).count()).toBe(0);
  const owner = await cardOf(bob, 'alice');
  await owner.getByText('owns this group').waitFor();
  expect(await owner.getByRole('button').allInnerTexts()).toEqual(['Close', 'Write privately', 'Block']);
  await bob.keyboard.press('Escape');
  const removed = await cardOf(bob, 'carol');
  expect(await removed.getByRole('button', { name: 'Hand the group over' }).count()).toBe(0);
  await removed.getByRole('button', { name: 'Remove', exact: true }).click();
  await removed.getByText('carol will see nothing').waitFor();
  await removed.getByRole('group', { name: 'Remove' }).getByRole('button', { name: 'Remove' }).click();
  await haveRoles(group, { alice: 'owner', bob: 'admin' });
  await removed.getByText('member of this group').waitFor({ state: 'detached' });
  await carol.waitFor({ state: 'detached' });

  const again = await cardOf(alice, 'bob');
  await again.getByRole('button', { name: 'Hand the group over' }).click();
  await again.getByRole('group', { name: 'Hand' }).getByRole('button', { name: 'Hand the group over' }).click();
  await haveRoles(group, { alice: 'admin', bob: 'owner' });
  await again.getByText('owns this group').waitFor();
  await alice.keyboard.press('Escape');
  await panel.getByRole('button', { name: 'Leave the group' }).click();
  await panel.getByRole('group', { name: 'Leave' }).getByRole('button', { name: 'Leave the group' }).click();
  await haveRoles(group, { bob: 'owner' });
  await alice.getByText('You are in no conversation yet').waitFor();
});

test('a member sees who is there, and nothing that is not theirs to do', async () => {
  const group = await newGroup('Member');
  const page = await open('bob', group);
  const panel = await details(page);
  await panel.getByRole('listitem').filter({ hasText: '@alice' }).getByText('owner').waitFor();
  const names = await panel.getByRole('button').allInnerTexts();
  expect(names.map((name) => /@(\w+)/.exec(name)?.[1] ?? name)).toEqual([
    'Close',
    '1 hour',
    '8 hours',
    '24 hours',
    '7 days',
    'alice',
    'bob',
    'Leave the group',
  ]);
});

test('somebody who is online already when they join is shown as online', async () => {
  const [group, elsewhere] = [await newGroup('Joined'), await newGroup('Elsewhere')];
  await server.operate('groups.add-member', { group: elsewhere, user: 'carol' });
  await open('carol', elsewhere);
  const panel = await details(await open('alice', group));
  await panel.getByRole('listitem').filter({ hasText: '@bob' }).waitFor();
  await server.operate('groups.add-member', { group, user: 'carol' });
  const carol = panel.getByRole('listitem').filter({ hasText: '@carol' });
  await carol.getByRole('img', { name: 'online', exact: true }).waitFor();
});

test('invitations are created, shown, and revoked', async () => {
  const group = await newGroup('Invited');
  const page = await open('alice', group);
  const panel = await details(page);
  await panel.getByLabel('The link is valid for').selectOption('1 day');
  await panel.getByLabel('Only one person can use it').check();
  await panel.getByText('the link works for people who have an account').waitFor();
  await panel.getByRole('button', { name: 'Create a link' }).click();
  // The new link has the focus, because it may be below what is in view.
  await page.locator('.invites input:focus').waitFor();
  const shown = await panel.getByLabel('Link of the invitation').inputValue();
  // In the configuration of the tests, invitation links begin with another URL than that of this server.
  const link = `${server.url}/v1/groups/invites/${shown.split('/').at(-1)!}`;
  await panel.getByText('0 of 1 use').waitFor();
  await panel.getByRole('button', { name: 'Copy' }).first().click();
  await panel.getByText(/Copied\.|The link is selected/).waitFor();
  await panel.getByRole('button', { name: 'QR code' }).click();
  await panel.getByRole('img', { name: 'QR code of the invitation' }).waitFor();
  const { data, side } = await page.evaluate<{ data: number[]; side: number }>(DRAW_QR_CODE);
  expect(jsqr.default(Uint8ClampedArray.from(data), side, side)?.data).toBe(shown);
  expect((await fetch(link)).status).toBe(200);
  await panel.getByRole('button', { name: 'Revoke' }).click();
  await panel.getByRole('group', { name: 'Revoke' }).getByRole('button', { name: 'Revoke' }).click();
  await panel.getByLabel('Link of the invitation').waitFor({ state: 'detached' });
  expect((await fetch(link)).status).toBe(410);
});

test('the title, the purpose and the notifications are changed, an error is a sentence, and the group is archived', async () => {
  const group = await newGroup('Before');
  const page = await open('alice', group);
  const panel = await details(page);
  await panel.getByRole('button', { name: 'Change', exact: true }).click();
  await panel.getByLabel('Title').fill('After');
  await panel.getByLabel('What it is for').fill(HOSTILE);
  await panel.getByRole('button', { name: 'Save' }).click();
  await panel.getByText(HOSTILE, { exact: true }).waitFor();
  await page.getByRole('heading', { name: 'After' }).first().waitFor();

  await panel.getByLabel('Notify me of').selectOption('mentions of me');
  await panel.getByRole('button', { name: '8 hours' }).click();
  await panel.getByText('Muted until').waitFor();
  await panel.getByRole('button', { name: 'Unmute' }).click();
  await panel.getByRole('button', { name: '8 hours' }).waitFor();
  expect(await panel.getByLabel('Notify me of').inputValue()).toBe('mentions');

  await page.route('**/v1/api/groups.archive', (route) =>
    route.fulfill({ status: 503, json: { status: 'failure', code: 'overloaded', message: 'Too much at once' } }),
  );
  const archive = async (): Promise<void> => {
    await panel.getByRole('button', { name: 'Archive the group' }).click();
    await panel.getByRole('group', { name: 'Archive' }).getByRole('button', { name: 'Archive the group' }).click();
  };
  await archive();
  await panel.getByRole('alert').getByText('Too much at once').waitFor();
  for (const each of complaints) each.splice(0);
  await page.unroute('**/v1/api/groups.archive');
  await archive();
  await panel.getByRole('button', { name: 'Open the group again' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('This group is archived').waitFor();
});

test('a panel that is opened while the browser still goes back from it is shown', async () => {
  const page = await open('alice', await newGroup('Quick'));
  const path = await page.evaluate<string>('location.pathname');
  await page.getByRole('button', { name: 'Details' }).click();
  await page.getByRole('dialog').waitFor();
  // Both the close and the click happen in one task, so that the browser cannot have gone back in between.
  await page.evaluate(`
    document.querySelector('dialog').dispatchEvent(new Event('close'));
    [...document.querySelectorAll('button')].find((each) => each.textContent === 'Details').click();`);
  await eventually(
    () => page.evaluate<boolean>('history.state?.panelSteps === 1 && document.querySelector("dialog") !== null'),
    (isShown) => isShown,
  );
  await page.keyboard.press('Escape');
  await eventually(
    () => page.evaluate<string>('location.pathname'),
    (now) => now === path,
  );
});

test('the panel is used by the keyboard alone, and the focus goes back to where it was', async () => {
  const group = await newGroup('Keys');
  const page = await open('alice', group);
  const focused = () => page.evaluate<string>('document.activeElement.textContent');
  await page.getByRole('button', { name: 'Details' }).focus();
  await page.keyboard.press('Enter');
  const panel = page.getByRole('dialog');
  await panel.getByRole('button', { name: 'Archive the group' }).focus();
  await page.keyboard.press('Enter');
  await eventually(focused, (text) => text === 'Cancel');
  await page.keyboard.press('Enter');
  await eventually(focused, (text) => text === 'Archive the group');
  await page.keyboard.press('Escape');
  await eventually(focused, (text) => text === 'Details');
  // The page closes the panel before the browser has gone back in its history.
  await page.waitForURL(/\/c\/\d+$/);
  await page.keyboard.press('Enter');
  await panel.getByRole('button', { name: 'Close' }).focus();
  await page.keyboard.press('Enter');
  await eventually(focused, (text) => text === 'Details');
});
