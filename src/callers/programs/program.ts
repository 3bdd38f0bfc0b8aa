/**
 * The URL that a program posts to, and the values that a user enters in the program for it. `<address>` stands for the
 * URL of a group, `<server>/v1/webhooks/<token>`; `<host>` for the server's URL without its scheme.
 */
export interface CallerAddress {
  /** The kind of program that the address is for, or the program itself. */
  readonly name: string;
  /** The values to paste into the program, by the program's names for them. */
  readonly valuesToPaste: Readonly<Record<string, string>>;
  /** The URL that the program makes from the values and posts to. */
  readonly url: string;
}

/** One way to set up a program. */
export interface ProgramSetup {
  /**
   * The name of this setup, such as the type of webhook that the user chooses in the program. Absent if the program has
   * only one setup.
   */
  readonly title?: string;
  readonly address: CallerAddress;
  /** Where the user enters the lines of `configuration`, such as a file or a page of settings. */
  readonly configurationPlace: string;
  /** The language of the code block with `configuration`. */
  readonly language: 'text' | 'yaml' | 'sh' | 'ini' | 'php' | 'js' | 'groovy' | 'python';
  readonly configuration: string;
  /** The file with a body that the program sends with this setup: `<format>/<name>` below test/callers/fixtures. */
  readonly fixture: string;
}

export interface CallerProgram {
  readonly name: string;
  /** The ways to set up the program, the recommended one first. */
  readonly setups: readonly [ProgramSetup, ...ProgramSetup[]];
  /** Sentences about what is special with this program. */
  readonly remarks: readonly string[];
}

const webhookAddress = (name: string, url: string): CallerAddress => ({ name, valuesToPaste: { URL: url }, url });

/** All addresses that the setups of programs use. */
export const callerAddresses = {
  group: webhookAddress('Webhook', '<address>'),
  slack: webhookAddress('Slack', '<address>/slack'),
  discord: webhookAddress('Discord', '<address>/discord'),
  teams: webhookAddress('Teams', '<address>/teams'),
  googleChat: webhookAddress('Google Chat', '<address>/google-chat'),
  json: webhookAddress('JSON', '<address>/json'),
  jenkins: {
    name: 'Jenkins',
    valuesToPaste: { 'base URL': '<server>/v1/webhooks/', token: '<token>' },
    url: '<address>',
  },
  mattermost: {
    name: 'Mattermost',
    valuesToPaste: { server: '<server>', token: '<token>' },
    url: '<server>/hooks/<token>',
  },
  discordLibrary: {
    name: 'Discord library',
    valuesToPaste: { 'base URL': '<server>/api', id: '1', token: '<token>' },
    url: '<server>/api/v10/webhooks/1/<token>',
  },
  gotify: { name: 'Gotify', valuesToPaste: { server: '<server>', token: '<token>' }, url: '<server>/message' },
  ntfy: { name: 'ntfy', valuesToPaste: { server: '<server>/v1/webhooks', topic: '<token>' }, url: '<address>' },
  telegram: {
    name: 'Telegram bot',
    valuesToPaste: { 'base URL': '<server>', token: '100:<token>' },
    url: '<server>/bot100:<token>/sendMessage',
  },
} as const satisfies Readonly<Record<string, CallerAddress>>;
