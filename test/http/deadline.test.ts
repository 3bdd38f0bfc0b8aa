import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startDeadline } from '../../src/http/deadline.ts';
import { readJson } from '../support/server.ts';

let server: Server;

beforeAll(async () => {
  // The handler of this server sends no answer, so only the deadline answers.
  server = createServer((req, res) => {
    req.resume();
    startDeadline(req, res, 50);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const POSTED = 'This took too long: it may have been posted. Repeating a post is safe with an Idempotency-Key';
const DONE = 'This took too long: it may have been done; look before you repeat it';
const AWAY = 'The database is away; nothing was done, please repeat the request';

test.each([
  ['POST', '/v1/webhooks/token', POSTED],
  ['POST', '/v1/webhooks/token/?reverse', POSTED],
  ['POST', '/v1/webhooks/token/reverse', DONE],
  ['POST', '/v1/webhooks/token/reverse/5/redeliver', DONE],
  ['PATCH', '/v1/webhooks/token/reverse/5', DONE],
  ['DELETE', '/v1/webhooks/token/reverse/5', DONE],
  ['GET', '/v1/webhooks/token/reverse/5/deliveries', AWAY],
])('a request whose time is up is told what that means: %s %s', async (method, path, message) => {
  const { port } = server.address() as AddressInfo;
  const response = await readJson(await fetch(`http://127.0.0.1:${port}${path}`, { method }));
  expect([response.status, response.body]).toEqual([503, { message }]);
});
