/**
 * The address that a program posts to, and the values that are entered in the program for it. `<address>` stands for
 * the URL of a group, `<server>/v1/webhooks/<token>`, and `<host>` for the server without its scheme.
 */
export interface CallerAddress {
  /** The kind of program that the address is for, or the program itself. */
  readonly name: string;
  /** The values to paste, by the names that programs have for them. */
  readonly values: Readonly<Record<string, string>>;
  /** The URL that the program makes from the values and posts to. */
  readonly url: string;
}

/** One of the ways in which a program is set up. */
export interface ProgramSetup {
  /** The type that is chosen in the program, where there are several setups. */
  readonly title?: string;
  readonly address: CallerAddress;
  /** The place where the lines of `configuration` are written or chosen. */
  readonly place: string;
  /** Language of the code block. */
  readonly language: 'text' | 'yaml' | 'sh' | 'ini' | 'php' | 'js' | 'groovy' | 'python';
  readonly configuration: string;
  /** A body that the program sends with this setup: `<format>/<name>` below test/callers/fixtures. */
  readonly fixture: string;
}

export interface Program {
  readonly name: string;
  /** The recommended one first. */
  readonly setups: readonly [ProgramSetup, ...ProgramSetup[]];
  /** Sentences on how this program differs from others. */
  readonly remarks: readonly string[];
}

const webhook = (name: string, url: string): CallerAddress => ({ name, values: { URL: url }, url });

/** All addresses that programs are set up with. */
export const addresses = {
  group: webhook('Webhook', '<address>'),
  slack: webhook('Slack', '<address>/slack'),
  discord: webhook('Discord', '<address>/discord'),
  teams: webhook('Teams', '<address>/teams'),
  googleChat: webhook('Google Chat', '<address>/google-chat'),
  json: webhook('JSON', '<address>/json'),
  jenkins: {
    name: 'Jenkins',
    values: { 'base URL': '<server>/v1/webhooks/', token: '<token>' },
    url: '<address>',
  },
  mattermost: {
    name: 'Mattermost',
    values: { server: '<server>', token: '<token>' },
    url: '<server>/hooks/<token>',
  },
  discordLibrary: {
    name: 'Discord library',
    values: { 'base URL': '<server>/api', id: '1', token: '<token>' },
    url: '<server>/api/v10/webhooks/1/<token>',
  },
  gotify: { name: 'Gotify', values: { server: '<server>', token: '<token>' }, url: '<server>/message' },
  ntfy: { name: 'ntfy', values: { server: '<server>/v1/webhooks', topic: '<token>' }, url: '<address>' },
  telegram: {
    name: 'Telegram bot',
    values: { 'base URL': '<server>', token: '100:<token>' },
    url: '<server>/bot100:<token>/sendMessage',
  },
} as const satisfies Readonly<Record<string, CallerAddress>>;
