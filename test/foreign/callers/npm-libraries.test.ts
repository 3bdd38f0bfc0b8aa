import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { IncomingWebhook } from '@slack/webhook';
import { Telegram } from 'telegraf';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { messagesOf } from './programs.ts';

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

describe('@slack/webhook posts', () => {
  const attachments = [{ color: 'danger', title: 'Build failed', text: 'on <http://ci.example.org/1|main>' }];
  const blocks = [{ type: 'section', text: { type: 'mrkdwn', text: '*Done* &amp; well' } }];
  test.each([
    ['text', { text: 'hello' }, 'hello'],
    ['text and attachments', { text: 'CI', attachments }, 'CI\n🔴 Build failed\non main (http://ci.example.org/1)'],
    ['attachments', { attachments }, '🔴 Build failed\non main (http://ci.example.org/1)'],
    ['blocks', { text: 'Done', blocks }, 'Done\n*Done* & well'],
  ])('%s', async (_name, message, text) => {
    for (const path of ['/hooks/T', '/v1/webhooks/T/slack']) {
      const webhook = new IncomingWebhook(server.url + path.replace('T', group.token));
      expect(await textsOf(async () => expect(await webhook.send(message)).toEqual({ text: 'ok' }))).toEqual([text]);
    }
    const pasted = new IncomingWebhook(group.webhook);
    expect(await textsOf(() => pasted.send(message))).toEqual([text]);
  });
});

describe('telegraf', () => {
  const telegram = (): Telegram => new Telegram(`100:${group.token}`, { apiRoot: server.url });

  test('asks who it is', async () => {
    expect(await telegram().getMe()).toMatchObject({ id: group.id, is_bot: true });
  });

  test('sends a message, and reads its number', async () => {
    const texts = await textsOf(async () => {
      const sent = await telegram().sendMessage(-7, 'a *bold* word', { parse_mode: 'MarkdownV2' });
      expect(sent).toMatchObject({ message_id: expect.any(Number), chat: { id: -group.id } });
    });
    expect(texts).toEqual(['a *bold* word']);
  });

  test('sends a file with a caption', async () => {
    const texts = await textsOf(() => telegram().sendDocument(-7, { source: report }, { caption: 'The report' }));
    expect(texts).toEqual(['The report']);
  });
});
