import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newWebPush } from '../support/devices.ts';
import { readJson, TestServer } from '../support/server.ts';

const webPush = newWebPush();
const KEY = '/nowhere/of-a-service-account.json';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({
    googlePush: {
      keys: [
        { projectId: 'first', key: KEY },
        { projectId: '123456789012', key: KEY },
      ],
    },
    applePush: {
      keys: [{ keyId: 'KEYID12345', teamId: 'TEAMID1234', path: KEY, bundleId: 'org.example.app', sandbox: true }],
    },
    webPush,
    limits: { fileBytes: 12_345 },
  });
});
afterAll(async () => server.stop());

test('/v1/about says what devices can be registered for and how large a file may be, and nothing of the keys', async () => {
  const response = await fetch(`${server.url}/v1/about`);
  const text = await response.clone().text();
  const { body } = await readJson(response);
  expect(body).toMatchObject({
    push: { google: ['first', '123456789012'], apple: ['org.example.app'], webPush: webPush.public },
    files: { maxBytes: 12_345 },
  });
  for (const secret of [webPush.private, webPush.vapidSubject, KEY, 'KEYID12345', 'TEAMID1234']) {
    expect(text).not.toContain(secret);
  }
});
