import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { afterEach, expect, test } from '@jest/globals';
import { maxClientConnections, ConnectionLimit, parseDescriptorLimit } from '../../src/connection-limit.ts';
import { HttpListener } from '../../src/http/listener.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/recording-log.ts';
import { requestBytes, Wire } from './wire.ts';

const CONFIG = { interface: '127.0.0.1', port: 0, requestToResponseTimeoutMs: 60_000, maxHeaderBytes: 16 * 1024 };
const respond: RequestListener = (_req, res) => void res.writeHead(200, { 'content-length': 0 }).end();

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** Opens a listener whose connections count towards this limit. Resolves to its port. */
async function open(limit: ConnectionLimit): Promise<number> {
  const listener = new HttpListener(CONFIG, respond, { limit });
  cleanups.push(() => listener.stop(0));
  return listener.start();
}

/**
 * Opens a connection and sends a request. Resolves to the connection if it got an answer, or to null if the server
 * closed it without one.
 */
async function connect(port: number): Promise<Wire | null> {
  const wire = await Wire.open(port);
  cleanups.push(() => wire.close());
  wire.write(requestBytes({ method: 'GET', path: '/' }));
  return wire.response().then(
    () => wire,
    () => null,
  );
}

test('connections of all listeners together are bounded, and refused ones are logged once and counted', async () => {
  const lines: string[] = [];
  const limit = new ConnectionLimit(3, recordingLog(lines));
  const ports = [await open(limit), await open(limit)];
  const first = await connect(ports[0]!);
  for (const port of ports) expect(await connect(port)).not.toBe(null);
  for (const port of ports) expect(await connect(port)).toBe(null);
  expect(limit.droppedConnectionCount).toBe(2);
  expect(lines.filter((line) => line.includes('connections are refused'))).toHaveLength(1);
  first!.close();
  // The freed place is also free for the other listener.
  await eventually(
    () => connect(ports[1]!),
    (wire) => wire !== null,
  );
});

test('the bound leaves a quarter of the descriptors of the process for all that is no client', () => {
  const limits = (text: string): string =>
    `Limit   Soft Limit  Hard Limit  Units\nMax open files            ${text}    files`;
  expect(parseDescriptorLimit(limits('300        4096'))).toBe(300);
  expect(parseDescriptorLimit(limits('unlimited  unlimited'))).toBe(null);
  const own = parseDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
  expect(maxClientConnections()).toBe(own === null ? null : Math.floor((own * 3) / 4));
});
