import type { SampleConversation } from './sample-content.ts';
import { openConversation, showList } from './screen-steps.ts';
import type { Screen, Visit } from './screen-visits.ts';

/** Opens the details of a conversation. */
async function openDetails(visit: Visit, conversation: SampleConversation): Promise<void> {
  await openConversation(visit, conversation);
  await visit.page.getByRole('button', { name: 'Details' }).click();
  await visit.page.locator('dialog.drawer').getByRole('heading', { name: 'Notifications' }).waitFor();
}

/** Opens the screen of the integration or of the reverse webhooks of a group that the person owns. */
async function openWebhooks({ page, server, content }: Visit, panel: 'integration' | 'hooks'): Promise<void> {
  await page.goto(`${server.url}/c/${content.operations}/${panel}`);
  await page.locator('.webhooks h3').first().waitFor();
}

/** Opens a dialog by a button above or below the list of conversations. */
async function openFromList(visit: Visit, button: string): Promise<void> {
  await openConversation(visit, 'operations');
  await showList(visit.page);
  await visit.page.getByRole('button', { name: button, exact: true }).click();
  await visit.page.getByRole('dialog').waitFor();
}

/** The screen of one part of the settings; `shown` is a text that the part shows once it is loaded. */
const settingsPart = (part: string, shown: string): Screen => ({
  name: `settings-${part}`,
  open: async ({ page, server }) => {
    await page.goto(`${server.url}/settings/${part}`);
    await page.getByRole('dialog').getByText(shown).first().waitFor();
  },
});

/** The screens of panels, dialogs and lists of suggestions over a conversation. */
export const DIALOG_SCREENS: readonly Screen[] = [
  {
    name: 'details-owner',
    open: async (visit) => {
      await openDetails(visit, 'operations');
      await visit.page.getByText('You own this group.').waitFor();
    },
  },
  {
    name: 'details-member',
    open: async (visit) => {
      await openDetails(visit, 'deployments');
      await visit.page.locator('dialog.drawer').getByText('@omar').waitFor();
    },
  },
  {
    name: 'integration',
    open: async (visit) => {
      await openWebhooks(visit, 'integration');
      await visit.page.getByRole('button', { name: 'Show the secret part' }).waitFor();
    },
  },
  {
    name: 'hooks',
    open: async (visit) => {
      await openWebhooks(visit, 'hooks');
      await visit.page.locator('.hook-list li').first().waitFor();
      await visit.page.getByRole('button', { name: 'Add a reverse webhook' }).click();
    },
  },
  {
    name: 'hook',
    open: async (visit) => {
      await openWebhooks(visit, 'hooks');
      await visit.page.locator('.hook-head a').first().click();
      await visit.page.locator('.hook-sentence').waitFor();
      await visit.page.getByText('As a table').click();
      await visit.page.getByText('Code that verifies a request').click();
      await visit.page.getByRole('button', { name: 'Show an example request' }).click();
      await visit.page.getByText('webhook-signature:').waitFor();
      await visit.page.getByRole('list', { name: 'Delivery log' }).waitFor();
    },
  },
  {
    name: 'person',
    open: async (visit) => {
      await openDetails(visit, 'operations');
      await visit.page.locator('dialog.drawer').getByRole('button', { name: '@omar' }).click();
      await visit.page
        .locator('dialog:not(.drawer)')
        .getByText(/account since/)
        .waitFor();
    },
  },
  {
    name: 'new-conversation',
    open: async (visit) => {
      await openFromList(visit, 'New');
      await visit.page.locator('.found').last().getByRole('button').first().waitFor();
    },
  },
  {
    name: 'search',
    open: async (visit) => {
      const { page } = visit;
      await openFromList(visit, 'Search');
      await page.getByRole('searchbox').fill('latency');
      await page.getByRole('searchbox').press('Enter');
      await page.locator('.found button').first().waitFor();
    },
  },
  {
    name: 'search-without-result',
    open: async (visit) => {
      const { page } = visit;
      await openFromList(visit, 'Search');
      await page.getByRole('searchbox').fill('xylophone');
      await page.getByRole('searchbox').press('Enter');
      await page.getByRole('status').getByText('No message').waitFor();
    },
  },
  {
    name: 'switcher',
    open: async (visit) => {
      await openConversation(visit, 'operations');
      await visit.page.keyboard.press('Control+k');
      await visit.page.getByRole('combobox').waitFor();
    },
  },
  {
    name: 'my-files',
    open: async (visit) => {
      await openFromList(visit, 'My files');
      await visit.page.getByText('rota-2026.ods').waitFor();
    },
  },
  {
    name: 'mentions',
    open: async (visit) => {
      await openConversation(visit, 'operations');
      const field = visit.page.getByRole('textbox', { name: /^Write to/ });
      await field.pressSequentially('Could you look at this, @l');
      await visit.page.getByRole('option').first().waitFor();
    },
  },
  {
    name: 'composer-with-files',
    open: async (visit) => {
      await openConversation(visit, 'operations');
      await visit.page.getByRole('textbox', { name: /^Write to/ }).fill('The plan of the new rack');
      await visit.page.locator('input[type=file]').setInputFiles({
        name: 'rack-plan.txt',
        mimeType: 'text/plain',
        buffer: Buffer.from('U1 switch, U2 router\n'),
      });
      await visit.page.getByRole('button', { name: 'Remove rack-plan.txt' }).waitFor();
      await visit.page.locator('.attached progress').waitFor({ state: 'detached' });
    },
  },
  {
    name: 'sign-out-question',
    open: async (visit) => {
      await openConversation(visit, 'operations');
      await visit.page.getByRole('textbox', { name: /^Write to/ }).fill('A text that was not sent yet');
      await showList(visit.page);
      await visit.page.getByRole('button', { name: 'Sign out' }).click();
      await visit.page.getByRole('dialog').waitFor();
    },
  },
  settingsPart('profile', 'Save'),
  settingsPart('sessions', 'this browser'),
  settingsPart('app-passwords', 'Backup report'),
  settingsPart('devices', 'Firefox on Linux'),
  settingsPart('bots', 'on-call-bot'),
  settingsPart('webhooks', 'The pager of the people on call'),
  settingsPart('blocked', 'Free Prizes'),
  settingsPart('appearance', 'Colours'),
  settingsPart('shortcuts', 'Ctrl'),
  {
    name: 'settings-bot-tokens',
    open: async ({ page, server }) => {
      await page.goto(`${server.url}/settings/bots`);
      await page.getByRole('dialog').getByRole('button', { name: 'of on-call-bot' }).click();
      await page.getByText('rota script').waitFor();
    },
  },
];
