import { callerAddresses, type CallerProgram } from './program.ts';

/** Libraries with which the user's own programs can post. */
export const libraryPrograms: readonly CallerProgram[] = [
  {
    name: 'Slack SDK for JavaScript and Python',
    setups: [
      {
        title: '@slack/webhook',
        address: callerAddresses.slack,
        configurationPlace: 'the program',
        language: 'js',
        configuration: `import { IncomingWebhook } from '@slack/webhook';

await new IncomingWebhook('<address>/slack').send({ blocks });`,
        fixture: 'slack/layout/sections',
      },
      {
        title: 'slack_sdk',
        address: callerAddresses.slack,
        configurationPlace: 'the program',
        language: 'python',
        configuration: `from slack_sdk.webhook import WebhookClient

response = WebhookClient("<address>/slack").send(text="Deployed v2 (<https://example.org/v2>), see <https://example.org> &amp; &lt;you&gt;")
assert response.body == "ok"`,
        fixture: 'slack/layout/suffix-text-only',
      },
    ],
    remarks: [
      'The clients of the Web API (`chat.postMessage`) need Slack itself.',
      'Neither repeats after an error answer unless it is told to.',
    ],
  },
  {
    name: 'discord.js',
    setups: [
      {
        address: callerAddresses.discordLibrary,
        configurationPlace: 'the program',
        language: 'js',
        configuration: `import { WebhookClient } from 'discord.js';

const webhook = new WebhookClient({ id: '1', token: '<token>' }, { rest: { api: '<server>/api' } });
await webhook.send({ content, embeds, files });`,
        fixture: 'discord/discord-js-embed',
      },
    ],
    remarks: [
      'The option `url` takes addresses of discord.com alone.',
      'Libraries that take any URL get `<server>/api/webhooks/1/<token>` or `<address>/discord`.',
      'It repeats after a 5xx, three times by default.',
    ],
  },
  {
    name: 'Telegram libraries for bots',
    setups: [
      {
        title: 'telegraf',
        address: callerAddresses.telegram,
        configurationPlace: 'the program',
        language: 'js',
        configuration: `import { Telegraf } from 'telegraf';

const bot = new Telegraf('100:<token>', { telegram: { apiRoot: '<server>' } });
await bot.telegram.sendMessage(1, html, { parse_mode: 'HTML' });`,
        fixture: 'telegram/healthchecks',
      },
      {
        title: 'grammY',
        address: callerAddresses.telegram,
        configurationPlace: 'the program',
        language: 'js',
        configuration: `import { Bot } from 'grammy';

const bot = new Bot('100:<token>', { client: { apiRoot: '<server>' } });
await bot.api.sendMessage(1, html, { parse_mode: 'HTML' });`,
        fixture: 'telegram/healthchecks',
      },
      {
        title: 'node-telegram-bot-api 2',
        address: callerAddresses.telegram,
        configurationPlace: 'the program',
        language: 'js',
        configuration: `import { Api } from 'node-telegram-bot-api';

const api = new Api('100:<token>', { apiRoot: '<server>' });
await api.sendMessage({ chat_id: 1, text: html, parse_mode: 'HTML' });`,
        fixture: 'telegram/healthchecks',
      },
    ],
    remarks: [
      'The digits before the colon are for libraries that check them; the chat may be any number.',
      '`sendMessage`, `sendPhoto` and `sendDocument` are answered. Bots that read messages use [reverse webhooks](reverse-webhooks.md).',
      'python-telegram-bot 13 takes the same token with `base_url="<server>/bot"`, node-telegram-bot-api 0.x with `baseApiUrl: \'<server>\'`.',
    ],
  },
  {
    name: 'Laravel and Monolog',
    setups: [
      {
        title: 'Laravel 11',
        address: callerAddresses.slack,
        configurationPlace: '.env',
        language: 'ini',
        configuration: `LOG_CHANNEL=stack
LOG_STACK=single,slack
LOG_SLACK_WEBHOOK_URL=<address>/slack`,
        fixture: 'slack/builds/monolog',
      },
      {
        title: 'Monolog 3',
        address: callerAddresses.slack,
        configurationPlace: 'the program',
        language: 'php',
        configuration: `use Monolog\\Handler\\SlackWebhookHandler;
use Monolog\\Level;

$logger->pushHandler(new SlackWebhookHandler(
    '<address>/slack',
    includeContextAndExtra: true,
    level: Level::Error,
));`,
        fixture: 'slack/builds/monolog',
      },
    ],
    remarks: [
      'The channel `slack` logs from `LOG_LEVEL` on; its `level` in `config/logging.php` changes that.',
      'It repeats nothing and does not tell that a post was refused.',
    ],
  },
  {
    name: 'Libraries for Microsoft Teams',
    setups: [
      {
        title: 'ms-teams-webhook',
        address: callerAddresses.teams,
        configurationPlace: 'the program',
        language: 'js',
        configuration: `import { IncomingWebhook } from 'ms-teams-webhook';

await new IncomingWebhook('<address>/teams').send(card);`,
        fixture: 'message-card/ms-teams-webhook',
      },
    ],
    remarks: [
      'Cards of both kinds are read, MessageCard and Adaptive Card. The answer is the `1` that several libraries look for.',
    ],
  },
];
