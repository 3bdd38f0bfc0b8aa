import { counted } from './words.ts';

/** The words of the screens for administrators of the installation. */
export const adminWords = {
  ready: 'The server works, and the database answers.',
  notReady: 'The database did not answer within a second: nothing can be posted, and no message is delivered.',
  version: 'Version',
  running: 'Running since',
  address: 'Address',
  listeners: 'Listens at',
  database: 'Database',
  databaseServers: 'Database servers',
  serverUsed: (server: string) => `${server}: in use`,
  serverUnused: (server: string, reason: string | null) =>
    reason === null ? `${server}: not asked yet` : `${server}: ${reason}`,
  waitingPosts: 'Posts that are not stored yet',
  inFlight: 'Deliveries without an answer yet',
  deliveries: 'Reverse webhooks',
  asOf: (seconds: number) => `These figures are ${counted(seconds, 'second', 'seconds')} old.`,
  notRead: 'The server has not read these figures yet.',
  pendingHooks: 'Hooks with messages that wait',
  oldestPending: 'Oldest pending message',
  none: 'none',
  lastErrors: 'Newest errors',
  noErrors: 'None.',
  errorOf: (hook: number, group: number, host: string, reason: string, moment: string) =>
    `Hook ${hook} of group ${group} (${host}): ${reason}, ${moment}`,

  peopleAre:
    'Accounts of people and bots. Nobody sees here what anybody wrote. A new sign-in link replaces the former one of the person.',
  admin: 'administrator',
  bot: 'bot',
  deactivated: 'deactivated',
  notSignedIn: 'not signed in',
  groups: (count: number) => counted(count, 'group', 'groups'),
  create: 'Create an account',
  nick: 'Nick, by which others mention the person',
  name: 'Name (optional)',
  makeAdmin: 'Administrator of the installation',
  link: 'Sign-in link',
  signInLinkFor: (nick: string) => `Sign-in link for @${nick}`,
  linkIs: (moment: string) => `Whoever opens it first is signed in. It works once, until ${moment}.`,
  deactivate: 'Deactivate',
  deactivateQuestion: (nick: string) =>
    `@${nick} is signed out everywhere at once and cannot sign in. What they wrote stays, and you can activate the account again.`,
  activate: 'Activate',
} as const;
