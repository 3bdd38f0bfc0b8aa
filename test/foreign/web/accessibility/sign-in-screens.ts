import { eventually } from '../../../support/eventually.ts';
import type { TestServer } from '../../../support/server.ts';
import { NEWCOMER, VIEWER } from './sample-content.ts';
import { refuse } from './screen-steps.ts';
import type { Screen, Visit } from './screen-visits.ts';
import { FAR_HOST, WebBrowser } from '../web-browser.ts';

const NOBODY = null;
const CODE_FIELD = 'Code of six digits';

async function linkFor(server: TestServer, nick: string): Promise<string> {
  return (await server.operate<{ link: string }>('accounts.invite', { user: nick })).link;
}

async function openSignIn({ page, server }: Visit): Promise<void> {
  await page.goto(server.url);
  await page.getByLabel('E-mail address').waitFor();
}

let addresses = 0;

/** Requests a code, each time for another address; resolves with the address. */
async function askForCode({ page }: Visit): Promise<string> {
  addresses += 1;
  const address = `grace.${addresses}@example.org`;
  await page.getByLabel('E-mail address').fill(address);
  await page.getByRole('button', { name: 'Send a code' }).click();
  await page.getByLabel(CODE_FIELD).waitFor();
  return address;
}

/** Enters a wrong code, and waits until the page shows the text `said`. */
async function enterWrongCode({ page }: Visit, said: string): Promise<void> {
  await page.getByLabel(CODE_FIELD).fill('000000');
  await page.getByLabel(CODE_FIELD).press('Enter');
  await page.getByText(said).first().waitFor();
}

/** The screens of the ways to sign in, with nobody signed in. */
export const SIGN_IN_SCREENS: readonly Screen[] = [
  { name: 'sign-in', account: NOBODY, open: openSignIn },
  {
    name: 'sign-in-other-ways',
    account: NOBODY,
    open: async (visit) => {
      await openSignIn(visit);
      await visit.page.getByText('I have an invitation').click();
      await visit.page.getByText('I have a sign-in link').click();
      await visit.page.getByLabel('Paste the sign-in link').fill('https://chat.example');
      await visit.page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await visit.page.getByText('This is not a sign-in link').waitFor();
    },
  },
  {
    name: 'sign-in-code',
    account: NOBODY,
    open: async (visit) => {
      await openSignIn(visit);
      await askForCode(visit);
    },
  },
  {
    name: 'sign-in-code-wrong',
    account: NOBODY,
    open: async (visit) => {
      await openSignIn(visit);
      await askForCode(visit);
      await enterWrongCode(visit, 'attempts left: 2');
    },
  },
  {
    name: 'sign-in-code-over',
    account: NOBODY,
    open: async (visit) => {
      await openSignIn(visit);
      await askForCode(visit);
      await enterWrongCode(visit, 'attempts left: 2');
      await enterWrongCode(visit, 'attempts left: 1');
      await enterWrongCode(visit, 'this was the last attempt');
    },
  },
  {
    name: 'sign-in-new-account',
    account: NOBODY,
    open: async (visit) => {
      const { page, server, content, mail } = visit;
      await page.goto(`${server.url}/join#${content.invitation.split('/').at(-1)!}`);
      const address = await askForCode(visit);
      await page.getByLabel(CODE_FIELD).fill(await mail.codeTo(address));
      await page.getByLabel(CODE_FIELD).press('Enter');
      await page.getByLabel('Nick, by').fill('-grace');
      await page.getByRole('button', { name: 'Create the account' }).click();
      await page.getByText('A nick has 1 to 32 letters').first().waitFor();
    },
  },
  {
    name: 'sign-in-link',
    account: NOBODY,
    open: async ({ page, server }) => {
      await page.goto(await linkFor(server, NEWCOMER));
      await page.getByRole('button', { name: 'Sign in with the link' }).waitFor();
    },
  },
  {
    name: 'sign-in-link-alone',
    account: NOBODY,
    open: async ({ page, server }) => {
      await page.route('**/v1/about', async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ json: { ...(await answer.json()), sign_in: { email: false, phone: false } } });
      });
      await page.goto(server.url);
      await page.getByLabel('Paste the sign-in link').waitFor();
    },
  },
  {
    name: 'invitation',
    account: NOBODY,
    open: async ({ page, server, content }) => {
      await page.goto(`${server.url}/join#${content.invitation.split('/').at(-1)!}`);
      await page.getByText('Omar Haddad invites you to the group').waitFor();
      await page.getByLabel('E-mail address').waitFor();
    },
  },
  {
    name: 'invitation-over',
    account: NOBODY,
    open: async ({ page, server }) => {
      await page.goto(`${server.url}/join#${'A'.repeat(43)}`);
      await page.getByText('This invitation is no longer valid').waitFor();
      await page.getByLabel('E-mail address').waitFor();
    },
  },
  {
    name: 'invitation-signed-in',
    open: async ({ page, server, content }) => {
      await page.goto(`${server.url}/join#${content.invitation.split('/').at(-1)!}`);
      await page.getByText('Omar Haddad invites you to the group').waitFor();
    },
  },
];

/** Signs the viewer in with a session that no other screen uses. */
async function signInByLink({ page, server }: Visit): Promise<void> {
  await page.goto(await linkFor(server, VIEWER));
  await page.getByRole('button', { name: 'Sign in with the link' }).click();
  await page.getByText(`(@${VIEWER})`).waitFor();
}

/** Opens a page of the viewer, begins a text in it, and ends the session. */
async function endSession(visit: Visit, end: 'expired' | 'ended'): Promise<void> {
  const { page, server, content } = visit;
  await signInByLink(visit);
  const { session } = await page.evaluate<{ session: number }>("fetch('/v1/session').then((answer) => answer.json())");
  if (end === 'expired') {
    await server.database.query(
      (sql) => sql`update session set expires_at = now() + interval '20 seconds' where id = ${session}`,
    );
    // After a change of the account, the server reads the session and its new end from the database.
    await server.operate('accounts.update', { user: VIEWER, admin: false });
  }
  await page.goto(`${server.url}/c/${content.operations}`);
  await page.getByRole('textbox').fill('half a thought');
  await keptDraft(page);
  await server.database.query((sql) => sql`delete from session where id = ${session}`);
  await server.operate('accounts.update', { user: VIEWER, admin: false });
  await page.getByText('You were signed out because').waitFor();
  await page.getByLabel('E-mail address').waitFor();
}

/** Makes the page store the draft, and resolves when the browser has stored it. */
async function keptDraft(page: Visit['page']): Promise<void> {
  await page.evaluate('dispatchEvent(new Event("pagehide"))');
  await eventually(
    () =>
      page.evaluate<number>(`new Promise((resolve) => {
        const open = indexedDB.open('klatch/');
        open.onsuccess = () => {
          const all = open.result.transaction('drafts').objectStore('drafts').getAll();
          all.onsuccess = () => {
            open.result.close();
            resolve(all.result.length);
          };
        };
      })`),
    (count) => count === 1,
  );
}

/** The screens that say why nobody is signed in: no sign-in yet, or the session has ended. */
export const SIGNED_OUT_SCREENS: readonly Screen[] = [
  {
    name: 'session-ended',
    account: NOBODY,
    open: async (visit) => {
      await endSession(visit, 'ended');
      await visit.page.getByText('has texts of').waitFor();
    },
  },
  { name: 'session-expired', account: NOBODY, open: (visit) => endSession(visit, 'expired') },
  {
    name: 'session-replaced',
    account: NOBODY,
    open: async (visit) => {
      const { page, server } = visit;
      await signInByLink(visit);
      const { page: other } = await WebBrowser.watch(page.context());
      await other.goto(await linkFor(server, NEWCOMER));
      await other.getByRole('button', { name: 'Sign in with it instead' }).click();
      await page.getByRole('button', { name: `Continue as @${NEWCOMER}` }).waitFor();
      await other.close();
    },
  },
  {
    name: 'loading',
    account: NOBODY,
    open: async ({ page, server }) => {
      await page.route('**/v1/session', () => {});
      await page.goto(server.url);
      await page.getByText('One moment').waitFor();
    },
  },
  {
    name: 'unavailable',
    account: NOBODY,
    open: async ({ page, server }) => {
      await refuse(page, '**/v1/session', 'The database is not available');
      await page.goto(server.url);
      await page.getByText('The server cannot answer').waitFor();
    },
  },
  {
    name: 'another-address',
    account: NOBODY,
    open: async ({ page, server }) => {
      await page.goto(`http://${FAR_HOST}:${server.port}/`);
      await page.getByText('This is not the address of this server').waitFor();
    },
  },
];
