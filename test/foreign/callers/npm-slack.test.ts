import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Blocks, Elements, Message } from 'slack-block-builder';
import { createLogger } from 'winston';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { messagesOf, runNode } from './programs.ts';
import { TlsFront } from './tls-front.ts';

/** The parts of winston-slack-webhook-transport that the tests use; it has no types of its own. */
const SlackHook = createRequire(import.meta.url)('winston-slack-webhook-transport') as new (options: {
  readonly webhookUrl: string;
  readonly emitAxiosErrors: boolean;
  readonly formatter?: (info: { readonly level: string; readonly message: unknown }) => object;
}) => import('winston').transport;

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup();
});
afterAll(() => server.stop());

const textsOf = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await messagesOf(server, group, work)).map(({ text }) => text);
const paths = ['/v1/webhooks/T', '/v1/webhooks/T/slack', '/hooks/T'];
const urlOf = (path: string): string => server.url + path.replace('T', group.token);

describe('winston-slack-webhook-transport logs', () => {
  async function log(options: Partial<ConstructorParameters<typeof SlackHook>[0]>, path: string): Promise<void> {
    const hook = new SlackHook({ webhookUrl: urlOf(path), emitAxiosErrors: true, ...options });
    const logger = createLogger({ transports: [hook] });
    const logged = new Promise((resolve, reject) => {
      hook.once('logged', resolve);
      logger.once('error', reject);
    });
    logger.error('Disk full <b>');
    await logged;
    logger.close();
  }

  test.each(paths)('a line as text on %s', async (path) => {
    expect(await textsOf(() => log({}, path))).toEqual(['error: Disk full <b>']);
  });

  test.each(paths)('attachments of a formatter on %s', async (path) => {
    const formatter = ({ level, message }: { level: string; message: unknown }) => ({
      attachments: [{ color: 'danger', title: level, text: message }],
    });
    expect(await textsOf(() => log({ formatter }, path))).toEqual(['🔴 error\nDisk full <b>']);
  });
});

describe('slack-notify', () => {
  let front: TlsFront;
  beforeAll(async () => {
    front = await TlsFront.start(server);
  });
  afterAll(() => front.stop());

  // slack-notify rejects any answer except the text "ok". The group's plain webhook URL answers otherwise, so it does
  // not suit.
  test.each(['/v1/webhooks/T/slack', '/hooks/T'])('tells by https of success and alerts on %s', async (path) => {
    const url = `https://127.0.0.1:${front.port}${path.replace('T', group.token)}`;
    const texts = await textsOf(async () => {
      const outcome = await runNode(
        `import slackNotify from 'slack-notify';
        const slack = slackNotify('${url}');
        await slack.success('Deployed');
        await slack.alert({ text: 'Disk full', fields: { host: 'db1', free: '4 %' } });`,
        { NODE_EXTRA_CA_CERTS: front.caFile },
      );
      expect(outcome).toEqual({ status: 0, output: '' });
    });
    expect(texts).toEqual(['Deployed', 'Disk full\nhost: db1 · free: 4 %']);
  });
});

describe('slack-block-builder', () => {
  const select = { placeholder: 'Choose', actionId: 'a' };
  const message = Message({ channel: '#deploys', text: 'Deployed' })
    .blocks(
      Blocks.Header({ text: 'Version 1.2' }),
      Blocks.Section({ text: '*Done* &amp; <https://example.org|well>' }).accessory(
        Elements.Button({ text: 'Details', actionId: 'b', url: 'https://example.org/1' }),
      ),
      Blocks.Section({ text: 'Tests' }).fields('*Passed*', '42'),
      Blocks.Divider(),
      Blocks.Context().elements('by ada', Elements.Img({ imageUrl: 'https://example.org/ada.png', altText: 'Ada' })),
      Blocks.Image({ imageUrl: 'https://example.org/graph.png', altText: 'The load', title: 'Load' }),
      Blocks.Video({
        title: 'Tour',
        videoUrl: 'https://example.org/tour',
        thumbnailUrl: 'https://example.org/tour.png',
        altText: 'A tour',
      }),
      Blocks.File({ externalId: 'F1' }),
      Blocks.Actions().elements(
        Elements.Button({ text: 'Open', actionId: 'c', url: 'https://example.org/2' }),
        Elements.Button({ text: 'Roll back', actionId: 'd' }),
        Elements.UserSelect(select),
        Elements.StaticSelect(select),
        Elements.DatePicker(select),
      ),
      Blocks.Input({ label: 'Why', blockId: 'e' }).element(Elements.TextInput({ actionId: 'f' })),
    )
    .buildToObject();

  test('makes a message of every kind of block, which is read', async () => {
    const texts = await textsOf(async () => {
      const answer = await fetch(group.webhook, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(message),
      });
      expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ ok: true })]);
    });
    expect(texts).toEqual([
      [
        'Deployed',
        'Version 1.2',
        '*Done* & well (https://example.org)',
        'Details: https://example.org/1',
        'Tests',
        '*Passed* · 42',
        '———',
        'by ada',
        'Load',
        'https://example.org/graph.png',
        'Tour: https://example.org/tour',
        'Open: https://example.org/2',
      ].join('\n'),
    ]);
  });
});
