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

test('/v1/about says how people sign in, what a message may have, and which page belongs to the server', async () => {
  const { body } = await readJson(await fetch(`${server.url}/v1/about`));
  expect(body).toMatchObject({
    sign_in: { link: true, email: false, phone: false },
    limits: { text: 40_000, attachments: 10 },
    base_uri: 'http://klatch.example',
  });
  const page = await (await fetch(server.url, { headers: { accept: 'text/html' } })).text();
  expect(page).toContain(` data-build="${body.build}"`);
});

test('/v1/about names the ways to sign in that are configured, and no build where no page is served', async () => {
  const other = await TestServer.start({
    smtp: {
      host: '127.0.0.1',
      port: 9,
      tls: 'none',
      user: null,
      password: null,
      from: 'klatch@example.org',
      emailTemplatePath: null,
    },
    web: { webClientEnabled: false },
  });
  try {
    const { body } = await readJson(await fetch(`${other.url}/v1/about`));
    expect(body).toMatchObject({ sign_in: { link: true, email: true, phone: false }, build: null });
  } finally {
    await other.stop();
  }
});
