import { afterAll, beforeAll, test } from '@jest/globals';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { describeWith, expectOneMessage, runProgram } from './programs.ts';

const APPRISE = '/usr/bin/apprise';

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup();
});
afterAll(() => server.stop());

describeWith(APPRISE, 'apprise 1.2 posts', () => {
  test.each<[string, { text: string; label?: string | null }]>([
    ['mmost://127.0.0.1:P/T', { text: 'Backup\nis <done> & well', label: 'Apprise' }],
    ['gotify://127.0.0.1:P/T', { text: 'Backup\nis <done> & well' }],
    ['ntfy://127.0.0.1:P/T', { text: 'Backup\nis <done> & well' }],
    ['json://127.0.0.1:P/v1/webhooks/T', { text: 'Backup\nis <done> & well' }],
    ['form://127.0.0.1:P/v1/webhooks/T', { text: 'Backup\nis <done> & well' }],
    ['matrix://T@127.0.0.1:P/?mode=matrix', { text: 'Backup\r\nis <done> & well' }],
    ['matrix://T@127.0.0.1:P/?mode=slack', { text: 'Backup\nis <done> & well\nApprise' }],
    ['rocket://127.0.0.1:P/?webhook=a/T', { text: '# Backup\nis <done> & well' }],
  ])('by %s', async (address, expected) => {
    const url = address.replace('P', String(server.port)).replace('T', group.token);
    await expectOneMessage(server, group, expected, () =>
      runProgram(APPRISE, ['-vv', '-t', 'Backup', '-b', 'is <done> & well', url]),
    );
  });
});
