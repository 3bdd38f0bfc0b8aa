import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { AddressInfo } from 'node:net';
import { STALL_TIMEOUT_MS } from '../../../src/http/deadline.ts';
import { beginUploadBody } from '../../../src/http/files/file-body.ts';

/** The time-out of a connection without progress. The server has such a time-out too. */
const STALL_MS = 200;

let timeouts: (number | undefined)[] = [];

/** Reads nothing of the body for a while, as a slow store does, and then reads all of it. */
async function takeSlowly(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const body = beginUploadBody(req, res);
  await wait(5 * STALL_MS);
  let bytes = 0;
  for await (const chunk of body) bytes += (chunk as Buffer).length;
  timeouts.push(req.socket.timeout);
  res.end(String(bytes));
  timeouts.push(req.socket.timeout);
}

const server = createServer((req, res) => void takeSlowly(req, res).catch(() => res.destroy()));

beforeAll(async () => {
  server.timeout = STALL_MS;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
});

test('an upload is not cut while the store takes nothing, and its connection is bounded again behind it', async () => {
  timeouts = [];
  const { port } = server.address() as AddressInfo;
  const body = new Uint8Array(4 * 1024 * 1024);
  const response = await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body });
  expect(await response.text()).toBe(String(body.length));
  expect(timeouts).toEqual([0, STALL_TIMEOUT_MS]);
});
