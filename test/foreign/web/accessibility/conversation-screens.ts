import type { Page } from 'playwright-core';
import { callAs } from '../../../support/call.ts';
import { eventually } from '../../../support/eventually.ts';
import { NEWCOMER } from './sample-content.ts';
import { openConversation, refuse, showList } from './screen-steps.ts';
import type { Screen, Visit } from './screen-visits.ts';

async function openMenu(visit: Visit): Promise<void> {
  await openConversation(visit, 'operations');
  await ownMessage(visit.page).hover();
  await ownMessage(visit.page).getByRole('button', { name: /^More/ }).click();
  await visit.page.getByRole('menu').waitFor();
}

/** The screens with the list of conversations and an open conversation beside it. */
export const CONVERSATION_SCREENS: readonly Screen[] = [
  {
    name: 'conversations',
    width: 'narrow',
    open: async ({ page, server }) => {
      await page.goto(server.url);
      await page.getByRole('link', { name: /Website relaunch/ }).waitFor();
    },
  },
  {
    name: 'no-conversations',
    account: NEWCOMER,
    open: async ({ page, server }) => {
      await page.goto(server.url);
      await page.getByText('You are in no conversation yet').waitFor();
    },
  },
  {
    name: 'another-link-opened',
    open: async ({ page, server }) => {
      const { link } = await server.operate<{ link: string }>('accounts.invite', { user: NEWCOMER });
      await page.goto(link);
      await page.getByRole('button', { name: 'Sign in with it instead' }).waitFor();
    },
  },
  { name: 'conversation', open: (visit) => openConversation(visit, 'operations') },
  { name: 'conversation-cards', open: (visit) => openConversation(visit, 'deployments') },
  { name: 'conversation-unread', open: (visit) => openConversation(visit, 'relaunch') },
  { name: 'conversation-private', open: (visit) => openConversation(visit, 'private') },
  {
    name: 'conversation-empty',
    open: async (visit) => {
      await openConversation(visit, 'empty');
      await visit.page.getByText('A program posts into this group').waitFor();
    },
  },
  {
    name: 'conversation-archived',
    open: async ({ page, server, content }) => {
      await page.goto(`${server.url}/c/${content.archived}`);
      await page.getByText('This group is archived').waitFor();
    },
  },
  {
    name: 'conversation-unknown',
    open: async ({ page, server }) => {
      await page.goto(`${server.url}/c/999999`);
      await page.getByText('This conversation does not exist').waitFor();
    },
  },
  {
    name: 'conversation-jumped',
    open: async ({ page, server, content }) => {
      // A flash (the highlight of the message jumped to) that has begun keeps its colours in Chromium when the colour
      // scheme changes. With reduced motion, none begins.
      await page.emulateMedia({ reducedMotion: 'reduce' });
      // The stopped clock of animations keeps the highlight from ending. Another test looks at the flash itself, with
      // motion.
      await (await page.context().newCDPSession(page)).send('Animation.setPlaybackRate', { playbackRate: 0 });
      await page.goto(`${server.url}/c/${content.operations}/4`);
      await page.locator('.jumped-to article').waitFor();
    },
  },
  {
    name: 'conversation-not-loaded',
    open: async ({ page, server, content }) => {
      await page.route('**/v1/api/messages.history', () => {});
      await page.goto(`${server.url}/c/${content.operations}`);
      await page.locator('.unloaded').first().waitFor();
    },
  },
  {
    name: 'conversation-cannot-load',
    open: async ({ page, server, content }) => {
      await refuse(page, '**/v1/api/messages.history', 'The database is not available');
      await page.goto(`${server.url}/c/${content.operations}`);
      await page.locator('.timeline').getByText('The database is not available').waitFor();
    },
  },
  {
    name: 'conversation-typing',
    open: async (visit) => {
      const { page, server, content } = visit;
      await openConversation(visit, 'private');
      // The server sends at most one typing event of an account in 2 s. The page may miss the first one, so the test
      // repeats the call.
      await eventually(
        async () => {
          await callAs(server, { token: content.peerToken }, 'messages.typing', { conversation: content.private });
          return page.getByText('Omar Haddad is typing').count();
        },
        (count) => count === 1,
      );
    },
  },
  {
    name: 'message-actions',
    // The actions are shown only while a pointer is over the message.
    width: 'wide',
    open: async (visit) => {
      await openConversation(visit, 'operations');
      await ownMessage(visit.page).hover();
      await ownMessage(visit.page).getByRole('button').first().waitFor();
    },
  },
  {
    name: 'message-deleted-soon',
    open: async (visit) => {
      const { page } = visit;
      await page.route('**/v1/api/messages.delete', () => {});
      // A page that closes sends a waiting deletion at once. The other visits need this message, so the page must not
      // notice that it closes.
      await page.addInitScript('addEventListener("pagehide", (event) => event.stopImmediatePropagation(), true)');
      await openConversation(visit, 'operations');
      await ownMessage(page).hover();
      await ownMessage(page)
        .getByRole('button', { name: /Delete/ })
        .click();
      await page.getByRole('button', { name: 'Undo' }).waitFor();
    },
  },
  // The menu has a screen for each width, because it closes when the size of the window changes.
  { name: 'message-menu', width: 'wide', open: openMenu },
  { name: 'message-menu-on-phone', width: 'narrow', open: openMenu },
  {
    name: 'picture-viewer',
    open: async (visit) => {
      await openConversation(visit, 'operations');
      await visit.page.getByRole('link', { name: 'Open the picture latency' }).click();
      await visit.page.getByRole('dialog').locator('img').waitFor();
    },
  },
  {
    name: 'offline',
    open: async (visit) => {
      await openConversation(visit, 'operations');
      await visit.page.routeWebSocket(/\/v1\/live/, (socket) => void socket.close());
      await visit.page.reload();
      await visit.page.getByText('No connection').waitFor();
    },
  },
  {
    name: 'action-refused',
    open: async (visit) => {
      await openConversation(visit, 'operations');
      await refuse(visit.page, '**/v1/session', 'The server is overloaded');
      await showList(visit.page);
      await visit.page.getByRole('button', { name: 'Sign out' }).click();
      await visit.page.getByText('The server is overloaded').waitFor();
    },
  },
];

const ownMessage = (page: Page) => page.getByRole('article').filter({ hasText: 'I read it this afternoon' });
