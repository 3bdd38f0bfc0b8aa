import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { KlatchError } from '../../src/errors.ts';
import { BodyMemory } from '../../src/http/body-memory.ts';
import { readBody } from '../../src/http/body.ts';
import { eventually } from '../support/eventually.ts';
import { requestBytes, Wire } from './wire.ts';

const MAX_BYTES = 1_000;
const SIZE = { maxBytes: MAX_BYTES, isFromConfig: true, allowsCompression: false };

let memory: BodyMemory;
let listener: Server;
const wires: Wire[] = [];
beforeEach(async () => {
  memory = new BodyMemory(MAX_BYTES);
  listener = createServer((req, res) => {
    readBody(req, res, SIZE, { memory }).then(
      (body) => res.writeHead(200, { 'content-length': 0, bytes: body.length }).end(),
      (error: unknown) => res.writeHead((error as KlatchError).status, { 'content-length': 0 }).end(),
    );
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
});
afterEach(async () => {
  for (const wire of wires.splice(0)) wire.close();
  listener.closeAllConnections();
  await new Promise((resolve) => listener.close(resolve));
});

/** Opens a request that announces one byte more than it sends. */
async function open(bytes: number): Promise<Wire> {
  const wire = await Wire.open((listener.address() as AddressInfo).port);
  wires.push(wire);
  const before = memory.usedBytes;
  wire.write(requestBytes({ path: '/', headers: { 'content-length': String(bytes + 1) } }));
  wire.write('x'.repeat(bytes));
  if (before + bytes <= MAX_BYTES) {
    await eventually(
      () => memory.usedBytes,
      (held) => held === before + bytes,
    );
  }
  return wire;
}

test('the largest body ends when too much of all is being read, and small ones get through', async () => {
  const small = await open(100);
  const large = await open(500);
  const middle = await open(300);
  const last = await open(200);
  expect((await large.response()).status).toBe(503);
  for (const wire of [small, middle, last]) {
    wire.write('x');
    expect((await wire.response()).status).toBe(200);
  }
  expect(memory.usedBytes).toBe(0);
});

test('a body that breaks off counts no longer', async () => {
  const wire = await open(900);
  wire.close();
  await eventually(
    () => memory.usedBytes,
    (held) => held === 0,
  );
});
