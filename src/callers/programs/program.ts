/**
 * The address that a program posts to, and the values that are pasted into it. `<address>` is a placeholder for the URL
 * of a group, `<server>/v1/webhooks/<token>`, and `<host>` for the server without its scheme.
 */
export interface CallerAddress {
  /** The kind of program that it is for, or the program itself. */
  readonly name: string;
  /** The values to paste, by the names that programs use. */
  readonly values: Readonly<Record<string, string>>;
  /** The URL that the program builds from them. */
  readonly url: string;
}

/** One of the ways to set up a program. */
export interface ProgramSetup {
  /** If there are several ways: the type that is chosen in the program. */
  readonly title?: string;
  readonly address: CallerAddress;
  /** Where the user writes or chooses the lines below. */
  readonly place: string;
  /** The language of the code block. */
  readonly language: 'text' | 'yaml' | 'sh' | 'ini' | 'php' | 'js' | 'groovy' | 'python';
  readonly configuration: string;
  /** A body that the program then sends: `<format>/<name>` below test/callers/fixtures. */
  readonly fixture: string;
}

export interface Program {
  readonly name: string;
  /** The recommended one first. */
  readonly setups: readonly [ProgramSetup, ...ProgramSetup[]];
  /** Sentences about peculiarities of this program. */
  readonly remarks: readonly string[];
}

const webhook = (name: string, url: string): CallerAddress => ({ name, values: { URL: url }, url });

/** All addresses for programs. */
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
