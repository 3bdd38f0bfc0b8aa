import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { describeWith, expectOneMessage, runProgram, type ProgramOutcome } from './programs.ts';
import { TlsFront } from './tls-front.ts';

let server: TestServer;
let group: TestGroup;
let front: TlsFront;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup();
  front = await TlsFront.start(server);
});
afterAll(async () => {
  await front.stop();
  await server.stop();
});

const php = (script: string): Promise<ProgramOutcome> =>
  runProgram('/usr/bin/php', ['-d', `curl.cainfo=${front.caFile}`, '-d', `openssl.cafile=${front.caFile}`], {
    input: `<?php\n${script}`,
  });

describeWith('/usr/share/php/Monolog/autoload.php', 'Monolog 2 posts by its handler for Slack', () => {
  async function log(path: string, options: string, text: string): Promise<void> {
    const outcome = await expectOneMessage(server, group, { text, label: 'bot' }, () =>
      php(`
        require 'Monolog/autoload.php';
        $log = new Monolog\\Logger('app');
        $url = '${server.url}${path.replace('T', group.token)}';
        $log->pushHandler(new Monolog\\Handler\\SlackWebhookHandler($url, null, 'bot', ${options}));
        $log->critical('Disk full <b>', ['host' => 'db1']);`),
    );
    expect(outcome.output).toBe('');
  }

  test.each(['/v1/webhooks/T', '/v1/webhooks/T/slack', '/hooks/T'])('attachments on %s', async (path) => {
    const fields = 'Level: CRITICAL\nHost: db1';
    await log(path, 'true, null, false, true', `🔴 Message\nDisk full <b>\n${fields}\nbot`);
    const context = 'Context:\n```{\n    "host": "db1"\n}```';
    await log(path, 'true, null, true, true', `🔴 CRITICAL\nDisk full <b>\n${context}\nbot`);
  });

  test('a line without an attachment', async () => {
    const text = expect.stringMatching(/^\[\S+\] app\.CRITICAL: Disk full <b> \{"host":"db1"\} \[\]$/);
    await log('/v1/webhooks/T/slack', 'false', text as unknown as string);
  });
});

describeWith(
  '/usr/share/php/Symfony/Component/Notifier/Bridge/Discord/autoload.php',
  "Symfony's notifiers post",
  () => {
    test.each([['Discord', () => `discord://${group.token}@127.0.0.1:${front.port}?webhook_id=1`]])(
      'by https as %s',
      async (bridge, dsn) => {
        const outcome = await expectOneMessage(server, group, { text: 'Deployed & <well>' }, () =>
          php(`
        require 'Symfony/Component/Notifier/Bridge/${bridge}/autoload.php';
        use Symfony\\Component\\Notifier\\Bridge\\${bridge}\\${bridge}TransportFactory;
        use Symfony\\Component\\Notifier\\Message\\ChatMessage;
        use Symfony\\Component\\Notifier\\Transport\\Dsn;
        $transport = (new ${bridge}TransportFactory())->create(new Dsn('${dsn()}'));
        $transport->send(new ChatMessage('Deployed & <well>'));
        echo 'sent';`),
        );
        expect(outcome.output).toBe('sent');
      },
    );
  },
);
