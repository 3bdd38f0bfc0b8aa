import { words } from './words.ts';

/** Keys that are pressed together, and their action. */
const SHORTCUTS: readonly (readonly [keys: readonly string[], meaning: string])[] = [
  [['Ctrl', 'K'], 'find a conversation'],
  [['Alt', '↑'], 'open the conversation above'],
  [['Alt', '↓'], 'open the conversation below'],
  [['Alt', 'Shift', '↑'], 'open the next unread conversation above'],
  [['Alt', 'Shift', '↓'], 'open the next unread conversation below'],
  [['Esc'], 'in the text field: mark all as read, and show the newest message'],
  [['Enter'], 'in the text field: send the message; on a message: open its menu'],
  [['Shift', 'Enter'], 'begin a new line'],
  [['↑'], 'in an empty text field: edit your last message'],
  [['@'], 'mention somebody'],
  [['PageUp', 'PageDown'], 'scroll the messages'],
  [['↑', '↓'], 'on a message: the previous or next message'],
  [['Home', 'End'], 'on a message: the first or last message'],
  [['E'], 'on a message: edit it'],
  [['C'], 'on a message: copy its text'],
  [['Delete'], 'on a message: delete it'],
  [['?'], 'outside of text fields: show this list'],
];

/** The words of the settings. */
export const settingsWords = {
  parts: {
    profile: 'Profile',
    sessions: 'Sessions',
    'app-passwords': 'App passwords',
    devices: 'Devices',
    bots: 'Bots',
    webhooks: 'Webhooks',
    blocked: 'Blocked people',
    appearance: 'Appearance',
    shortcuts: 'Keyboard shortcuts',
    server: 'Server',
    people: 'People',
  },
  toList: 'All settings',
  noConnection: 'There is no connection to the server: what you see may be out of date.',

  ownName: 'Name',
  ownNick: 'Nick, by which others mention you',
  ownAbout: 'About you',
  saved: 'Saved.',

  sessionsAre: 'Each sign-in is a session: of a browser, a phone or a terminal.',
  sessionNumber: (id: number) => `Session ${id}`,
  thisSession: 'this browser',
  lastUsedAt: (moment: string) => `used ${moment}`,
  createdAt: (moment: string) => `since ${moment}`,
  expiresAt: (moment: string) => `ends ${moment}`,
  endSession: 'End it',
  endSessionQuestion: 'The person who uses it will have to sign in again.',
  endOthers: 'End all others',
  endOthersQuestion: 'You stay signed in here, and nowhere else. App passwords end, too.',

  appPasswordsAre:
    'A program that acts as you, such as a script or another chat client, signs in with an app password.',
  noAppPasswords: 'You have no app password.',
  createAppPassword: 'Create an app password',
  appPasswordLabel: 'Which program will use it',
  appPasswordUsage: 'The program sends it as "Authorization: Bearer …"; for a terminal: klatch chat sign-in --token.',
  endAppPasswordQuestion: 'The program that uses it will be refused.',

  devicesAre: 'The server notifies these devices of messages while you are away.',
  noDevices: 'No device is registered for notifications.',
  deviceKind: (kind: string) => DEVICE_KINDS[kind] ?? kind,
  registeredAt: (moment: string) => `registered ${moment}`,
  thisDevice: 'registered by this session',
  removeDevice: 'Remove',
  removeDeviceQuestion: 'It will not be notified any more, until it registers again.',

  botsAre: 'A bot is an account for a program. It belongs to you, and acts with tokens that you create.',
  noBots: 'You have no bot.',
  createBot: 'Create a bot',
  botNick: 'Nick of the bot',
  botName: 'Its name',
  tokens: (count: number) => `Tokens (${count})`,
  tokensOfBot: (count: number, nick: string) => `Tokens (${count}) of ${nick}`,
  tokensOf: (nick: string) => `Tokens of ${nick}`,
  noTokens: 'This bot has no token.',
  removeBot: 'Remove',
  removeBotQuestion: (nick: string) => `The tokens of ${nick} end. What it wrote stays, and its nick stays taken.`,
  createToken: 'Create a token',
  tokenLabel: 'Where the token will be used',
  tokenScopes: 'What it allows',
  revoke: 'Revoke',
  revokeQuestion: 'Programs that use this token will be refused.',

  validFor: 'Valid for',
  noTimeLimit: 'no time limit',
  days: (days: number) => words.days(days),
  shownOnce: 'Copy it now: the server does not show it again.',
  secretOf: (label: string) => `Secret of ${label}`,
  copied: 'Copied.',
  copyByKeys: 'The browser does not let this page copy. The text is selected: press Ctrl+C.',
  done: 'Done',

  blockedAre: 'They cannot write to you in private, and do not learn of it.',
  noBlocked: 'You have blocked nobody.',
  blockedAt: (moment: string) => `since ${moment}`,
  unblock: 'Unblock',

  appearanceIsKept: 'This browser keeps the choice, for everybody who uses it.',
  appearanceIsNotKept: 'This browser lets the page keep nothing: the choice lasts until you leave the page.',
  appearance: {
    theme: { label: 'Colours', choices: { system: 'as the system has them', light: 'light', dark: 'dark' } },
    density: { label: 'Density', choices: { comfortable: 'comfortable', compact: 'compact' } },
    motion: { label: 'Motion', choices: { system: 'as the system has it', reduced: 'reduced' } },
  },

  keys: 'Keys',
  whatTheyDo: 'What they do',
  shortcuts: SHORTCUTS,
} as const;

const DEVICE_KINDS: Readonly<Record<string, string>> = {
  google: 'Android or Chrome',
  apple: 'iPhone, iPad or Mac',
  web: 'Browser',
};

/** The scopes of a bot's token in words, in the order in which the page lists them. */
export const scopeWords: Readonly<Record<string, string>> = {
  'messages:read': 'read messages, search them, follow conversations live',
  'messages:write': 'send messages, change and delete its own',
  'groups:read': 'list groups and their members',
  'groups:write': 'create groups and change them, add and remove members, invite, join and leave',
  'hooks:manage': 'see tokens of groups and manage their webhooks, where the bot is owner or admin',
  account: "change the bot's own profile, end its sessions",
};
