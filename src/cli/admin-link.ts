import type { Command } from 'commander';
import { createSignInLink } from '../operations/accounts/sign-in-links.ts';
import { createUser, listUsersAndBots } from '../operations/accounts/users.ts';
import { createGroup, listAllGroups } from '../operations/groups/groups.ts';
import { print, printJson, type CommandContext } from './core/context.ts';
import { callServer } from './core/control-client.ts';
import { configuredDataDir } from './core/data-dir.ts';
import { configFlag, withExamples, withJson } from './core/options.ts';

/** The nick and the name of the account that `admin-link` creates if there is no administrator. */
const ADMIN_NICK = 'admin';
const ADMIN_NAME = 'Administrator';
/** The title of the first group, which the browser client shows after the first sign-in. */
const FIRST_GROUP_TITLE = 'Lobby';
/** The most administrators that are read from the server; an installation has only a few. */
const MAX_LISTED_ADMINISTRATORS = 1_000;

/** The first administrator of an installation. */
interface FirstAdministrator {
  readonly nick: string;
  /** True if the account has a session, so that somebody has signed in already. */
  readonly hasSignedIn: boolean;
  /** True if this call created the account. */
  readonly isNew: boolean;
}

/** The server's answer after the creation of a group, with the webhook URL to which programs post. */
type NewGroup = Awaited<ReturnType<(typeof createGroup)['run']>>;

/** The result of `klatch admin-link`: a link that opens the browser client and signs in as the first administrator. */
interface AdminLink {
  readonly user: string;
  readonly created: boolean;
  readonly link: string;
  readonly expires_at: string;
  /** The group that this call created for a new installation; null: none. */
  readonly group: Pick<NewGroup, 'id' | 'title' | 'webhook'> | null;
}

export function addAdminLink(program: Command, context: CommandContext): void {
  const adminLinkCommand = program
    .command('admin-link')
    .description(
      'print an address that signs the first administrator in, in a browser, once and within 24 hours; a new ' +
        'installation gets the administrator and a first group',
    )
    .option('--nick <nick>', 'the nick of the administrator that is made', ADMIN_NICK)
    .action(async ({ nick, json }: { nick: string; json?: boolean }, self: Command) => {
      const dataDir = configuredDataDir(context, configFlag(self));
      const adminLink = await makeAdminLink(dataDir, nick);
      if (json === true) printJson(context, adminLink);
      else print(context, ...adminLinkLines(adminLink));
    });
  withExamples(withJson(adminLinkCommand), ['klatch admin-link']);
}

function adminLinkLines({ user, created, link, expires_at, group }: AdminLink): string[] {
  return [
    `Open ${link}`,
    '',
    ...(created ? [`Made the administrator ${user}.`] : []),
    ...(group === null ? [] : [`Made the group ${group.title}.`]),
    `Whoever opens this address first is signed in as ${user}. It is good once, until ${expires_at}.`,
    ...(group === null ? [] : ['', `Post a message into ${group.title}:`, `  curl -d 'Hello' ${group.webhook}`]),
  ];
}

/**
 * Creates a sign-in link for the first administrator. Creates the administrator if there is none. Before the
 * administrator's first sign-in it also creates a group if there is none. Rejects with CommandError.
 */
export async function makeAdminLink(dataDir: string, nick = ADMIN_NICK): Promise<AdminLink> {
  const { nick: user, isNew: created, hasSignedIn: isSignedIn } = await firstAdministrator(dataDir, nick);
  // Each call until the first sign-in checks whether a group exists: an earlier call may have been interrupted before
  // it created the group.
  const group = isSignedIn || (await hasGroup(dataDir)) ? null : await makeFirstGroup(dataDir, user);
  const { link, browser_link, expires_at } = await callServer({
    dataDir,
    operation: createSignInLink,
    input: { user },
  });
  const groupSummary = group === null ? null : { id: group.id, title: group.title, webhook: group.webhook };
  return { user, created, link: browser_link ?? link, expires_at, group: groupSummary };
}

async function hasGroup(dataDir: string): Promise<boolean> {
  const input = { after: 0, limit: 1, archived: null };
  return (await callServer({ dataDir, operation: listAllGroups, input })).groups.length > 0;
}

/** Creates the first group of a new installation. Rejects with CommandError. */
export function makeFirstGroup(dataDir: string, owner: string): Promise<NewGroup> {
  return callServer({ dataDir, operation: createGroup, input: { title: FIRST_GROUP_TITLE, owner } });
}

/**
 * Finds the active administrator with the lowest account number; creates one if there is none. Rejects with
 * CommandError.
 */
export async function firstAdministrator(dataDir: string, nick = ADMIN_NICK): Promise<FirstAdministrator> {
  const input = { after: '', limit: MAX_LISTED_ADMINISTRATORS, role: 'admin' as const };
  const { users } = await callServer({ dataDir, operation: listUsersAndBots, input });
  const [first] = users.filter(({ deactivated }) => !deactivated).sort((a, b) => a.id - b.id);
  if (first !== undefined) return { nick: first.nick, hasSignedIn: first.signed_in, isNew: false };
  await callServer({ dataDir, operation: createUser, input: { nick, name: ADMIN_NAME, admin: true } });
  return { nick, hasSignedIn: false, isNew: true };
}
