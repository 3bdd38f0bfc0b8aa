import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { describeWith, expectOneMessage, runProgram, type ProgramOutcome } from './programs.ts';

let server: TestServer;
let group: TestGroup;
let folder: string;
let report: string;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup();
  folder = await mkdtemp(join(tmpdir(), 'klatch-libraries-'));
  report = join(folder, 'report.txt');
  await writeFile(report, 'all is well');
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const ruby = (script: string): Promise<ProgramOutcome> => runProgram('/usr/bin/ruby', ['-'], { input: script });

describeWith(
  '/usr/share/rubygems-integration/all/specifications/slack-notifier-1.5.1.gemspec',
  'slack-notifier 1.5 of Ruby posts',
  () => {
    test.each(['/hooks/T', '/v1/webhooks/T', '/v1/webhooks/T/slack'])('text and attachments on %s', async (path) => {
      const url = server.url + path.replace('T', group.token);
      await expectOneMessage(
        server,
        group,
        {
          text: 'See the log (http://ci.example.org/1) & <b>\n🟢 Deployed\nto production (http://x.example.org)\nVersion: 1.2',
          label: 'deploy',
        },
        () =>
          ruby(`
        require 'slack-notifier'
        notifier = Slack::Notifier.new '${url}', channel: '#a', username: 'deploy'
        answers = notifier.ping 'See [the log](http://ci.example.org/1) & <b>',
          attachments: [{ fallback: 'f', color: 'good', title: 'Deployed', text: 'to <http://x.example.org|production>',
            fields: [{ title: 'Version', value: '1.2', short: true }] }]
        codes = [answers].flatten.map(&:code)
        abort codes.inspect unless codes == ['200']`),
      );
    });
  },
);

describeWith('/usr/share/doc/ruby-slack-messenger/copyright', 'slack-messenger 2.3 of Ruby posts', () => {
  test.each(['/hooks/T', '/v1/webhooks/T', '/v1/webhooks/T/slack'])('blocks on %s', async (path) => {
    const url = server.url + path.replace('T', group.token);
    await expectOneMessage(
      server,
      group,
      { text: 'Deployed\nVersion 1.2\nto production (http://x.example.org)', label: 'deploy' },
      () =>
        ruby(`
        require 'slack-messenger'
        messenger = Slack::Messenger.new '${url}', channel: '#a', username: 'deploy'
        answers = messenger.post text: 'Deployed', blocks: [
          { type: 'header', text: { type: 'plain_text', text: 'Version 1.2' } },
          { type: 'section', text: { type: 'mrkdwn', text: 'to <http://x.example.org|production>' } }]
        codes = [answers].flatten.map(&:code)
        abort codes.inspect unless codes == ['200']`),
    );
  });
});

describeWith('/usr/share/doc/ruby-discordrb-webhooks/copyright', 'discordrb-webhooks 3.4 of Ruby posts', () => {
  const head = (path: string): string => `
    require 'discordrb/webhooks'
    client = Discordrb::Webhooks::Client.new(url: '${server.url + path.replace('T', group.token)}')
  `;
  const paths = ['/api/webhooks/1/T', '/v1/webhooks/T'];
  test.each(paths)('an embed on %s', async (path) => {
    await expectOneMessage(
      server,
      group,
      { text: 'Released\nVersion 1.2\n**all** green\nTests: 42', label: 'deploy' },
      () =>
        ruby(`${head(path)}
        client.execute do |builder|
          builder.content = 'Released'
          builder.username = 'deploy'
          builder.add_embed do |embed|
            embed.title = 'Version 1.2'
            embed.description = '**all** green'
            embed.colour = 0x00ff00
            embed.add_field(name: 'Tests', value: '42', inline: true)
          end
        end`),
    );
  });
  test.each(paths)('a file on %s', async (path) => {
    await expectOneMessage(server, group, { text: 'With a file' }, () =>
      ruby(`${head(path)}
        client.execute do |builder|
          builder.content = 'With a file'
          builder.file = File.open('${report}')
        end`),
    );
  });
});

const python = (script: string): Promise<ProgramOutcome> =>
  runProgram('/usr/bin/python3', ['-W', 'ignore', '-'], { input: script });

describeWith('/usr/lib/python3/dist-packages/telegram/bot.py', 'python-telegram-bot 13', () => {
  const head = (): string =>
    `import telegram\nbot = telegram.Bot('100:${group.token}', base_url='${server.url}/bot')\n`;

  test('asks who it is', async () => {
    const outcome = await python(`${head()}me = bot.get_me()\nprint(me.id, me.is_bot, me.first_name)`);
    expect(outcome).toEqual({ status: 0, output: `${group.id} True Klatch ${group.id}\n` });
  });

  test('sends a message, and reads its number', async () => {
    const outcome = await expectOneMessage(server, group, { text: 'a bold word' }, () =>
      python(
        `${head()}m = bot.send_message(-7, 'a <b>bold</b> word', parse_mode='HTML')\nprint(m.message_id, m.text, m.chat.id)`,
      ),
    );
    expect(outcome.output).toMatch(new RegExp(`^\\d+ a bold word -${group.id}\n$`));
  });

  test('sends a file with a caption', async () => {
    await expectOneMessage(server, group, { text: 'The report' }, () =>
      python(`${head()}bot.send_document(-7, open('${report}', 'rb'), caption='The report')`),
    );
  });

  test('sends a picture without a caption', async () => {
    await expectOneMessage(server, group, { text: '' }, () =>
      python(`${head()}bot.send_photo(-7, open('${report}', 'rb'))`),
    );
  });
});
