import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Api as GrammyApi, InputFile } from 'grammy';
import { Api as TelegramApi, InputFile as TelegramFile } from 'node-telegram-bot-api';
import { publish } from 'ntfy';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { expectOneMessage, messagesOf, runNode } from './programs.ts';

/** The parts of discord-webhook-node that the tests use; it has no types of its own. */
const { Webhook, MessageBuilder } = createRequire(import.meta.url)('discord-webhook-node') as {
  readonly Webhook: new (url: string) => {
    send(content: unknown): Promise<void>;
    sendFile(path: string): Promise<void>;
    warning(title: string, name: string, value: string): Promise<void>;
    setUsername(name: string): unknown;
  };
  readonly MessageBuilder: new () => Record<'setTitle' | 'setDescription' | 'setText', (text: string) => unknown>;
};

let server: TestServer;
let group: TestGroup;
let folder: string;
let report: string;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup();
  folder = await mkdtemp(join(tmpdir(), 'klatch-npm-'));
  report = join(folder, 'report.txt');
  await writeFile(report, 'all is well');
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/** The texts that the group gets while `work` runs. */
const textsOf = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await messagesOf(server, group, work)).map(({ text }) => text);

/**
 * discord.js runs in a process of its own. In this one, its undici would use the global dispatcher of the server's
 * undici, and would refuse files.
 */
describe('the WebhookClient of discord.js', () => {
  const head = (): string => `
    import { EmbedBuilder, WebhookClient } from 'discord.js';
    const client = new WebhookClient({ id: '1', token: '${group.token}' }, { rest: { api: '${server.url}/api' } });`;

  test('sends a text and an embed, and reads the number of the message', async () => {
    const outcome = await expectOneMessage(
      server,
      group,
      { text: 'Released\nVersion 1.2\n**all** green\nTests: 42', label: 'deploy' },
      () =>
        runNode(`${head()}
          const embed = new EmbedBuilder().setTitle('Version 1.2').setDescription('**all** green').setColor(0x00ff00);
          embed.addFields({ name: 'Tests', value: '42' });
          const sent = await client.send({ content: 'Released', username: 'deploy', embeds: [embed] });
          console.log(typeof sent.id, sent.channel_id, client.token.length > 0);`),
    );
    expect(outcome.output).toBe(`string ${group.id} true\n`);
  });

  test('sends a file', async () => {
    const outcome = await expectOneMessage(server, group, { text: 'The report' }, () =>
      runNode(`${head()}
        const sent = await client.send({ content: 'The report', files: ['${report}'] });
        console.log(sent.channel_id);`),
    );
    expect(outcome.output).toBe(`${group.id}\n`);
  });
});

describe('discord-webhook-node', () => {
  test.each(['/api/webhooks/1/T', '/v1/webhooks/T/discord'])('posts on %s', async (path) => {
    const webhook = new Webhook(server.url + path.replace('T', group.token));
    const embed = new MessageBuilder();
    embed.setTitle('Version 1.2');
    embed.setDescription('**all** green');
    const texts = await textsOf(async () => {
      await webhook.send('hello');
      await webhook.send(embed);
      await webhook.warning('Disk', 'free', '4 %');
      await webhook.sendFile(report);
    });
    expect(texts).toEqual(['hello', 'Version 1.2\n**all** green', 'Disk\nfree: 4 %', '']);
  });
});

describe('grammY', () => {
  const api = (): GrammyApi => new GrammyApi(`100:${group.token}`, { apiRoot: server.url });

  test('asks who it is, and sends a message and a file', async () => {
    expect(await api().getMe()).toMatchObject({ id: group.id, is_bot: true });
    const texts = await textsOf(async () => {
      const sent = await api().sendMessage(-7, 'a <b>bold</b> word', { parse_mode: 'HTML' });
      expect(sent).toMatchObject({ message_id: expect.any(Number), chat: { id: -group.id } });
      await api().sendDocument(-7, new InputFile(report), { caption: 'The report' });
    });
    expect(texts).toEqual(['a bold word', 'The report']);
  });
});

describe('node-telegram-bot-api', () => {
  const api = (): TelegramApi => new TelegramApi(`100:${group.token}`, { apiRoot: server.url });

  test('asks who it is, and sends a message and a file', async () => {
    expect(await api().getMe()).toMatchObject({ id: group.id, is_bot: true });
    const document = new TelegramFile(await readFile(report), { filename: 'report.txt' });
    const texts = await textsOf(async () => {
      const sent = await api().sendMessage({ chat_id: -7, text: 'a <b>bold</b> word', parse_mode: 'HTML' });
      expect(sent).toMatchObject({ message_id: expect.any(Number), chat: { id: -group.id } });
      await api().sendDocument({ chat_id: -7, document, caption: 'The report' });
    });
    expect(texts).toEqual(['a bold word', 'The report']);
  });
});

describe('ntfy', () => {
  test('publishes with a title, tags and a button', async () => {
    const texts = await textsOf(async () => {
      const answer = await publish({
        server: `${server.url}/v1/webhooks/`,
        topic: group.token,
        title: 'Backup of db1',
        message: 'No space left on device',
        priority: 5,
        tags: ['floppy_disk'],
        clickURL: 'https://db1.example.org/log',
        actions: [{ type: 'view', label: 'Log', url: 'https://db1.example.org/log' }],
      });
      expect(answer).toMatchObject({ id: expect.stringMatching(/^\d+:\d+$/) });
    });
    expect(texts).toEqual(['💾 Backup of db1\nNo space left on device\nLog: https://db1.example.org/log']);
  });
});
