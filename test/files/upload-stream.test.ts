import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { UploadStream, SourceAbortedError, type UploadStreamOptions } from '../../src/files/upload-stream.ts';

/** The windows in which an upload must make progress are long enough for a machine that is busy with other tests. */
const QUICK = { windowMs: 400, windowBytes: 100 };

let listener: Server;
let client: Socket;
let source: Socket;
const inflows: UploadStream[] = [];

beforeEach(async () => {
  listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const accepted = once(listener, 'connection') as Promise<[Socket]>;
  client = connect((listener.address() as AddressInfo).port, '127.0.0.1');
  [source] = await accepted;
  source.on('error', () => {});
});
afterEach(async () => {
  for (const inflow of inflows.splice(0)) inflow.destroy();
  client.destroy();
  source.destroy();
  await new Promise((resolve) => listener.close(resolve));
});

function flowing(changes: Partial<UploadStreamOptions> = {}): UploadStream {
  const inflow = new UploadStream(source, {
    maxBytes: 100_000,
    createExcessError: () => new Error('too long'),
    reserveQuota: null,
    bounds: QUICK,
    ...changes,
  });
  inflows.push(inflow);
  return inflow;
}

/** Reads the stream as fast as it arrives. Resolves to the content, and to the error if it failed. */
async function read(inflow: UploadStream): Promise<[string, unknown]> {
  let text = '';
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  const failure = await pipeline(inflow, sink).then(
    () => null,
    (error: unknown) => error,
  );
  return [text, failure];
}

describe('what comes from a client', () => {
  test('passes as it is, with its first bytes at hand', async () => {
    const inflow = flowing();
    client.end('hello');
    expect(await read(inflow)).toEqual(['hello', null]);
    expect([inflow.receivedBytes, inflow.firstBytes.toString()]).toEqual([5, 'hello']);
  });

  test('fails when nothing comes for too long, and leaves the connection to be answered', async () => {
    const inflow = flowing();
    client.write('hello');
    expect(await read(inflow)).toEqual(['hello', expect.objectContaining({ code: 'request_timeout' })]);
    expect([source.destroyed, source.writable]).toEqual([false, true]);
  });

  test('fails when it trickles', async () => {
    const inflow = flowing();
    const drip = setInterval(() => client.write('.'), 30);
    const [, failure] = await read(inflow);
    clearInterval(drip);
    expect(failure).toMatchObject({ code: 'request_timeout' });
  });

  test('may take as long as it flows', async () => {
    const inflow = flowing();
    const startedAt = performance.now();
    let sent = 0;
    const drip = setInterval(() => {
      client.write('.'.repeat(100));
      sent += 100;
      if (performance.now() - startedAt > 1_300) {
        clearInterval(drip);
        client.end();
      }
    }, 20);
    const [text, failure] = await read(inflow);
    expect([failure, text.length]).toEqual([null, sent]);
  });

  test('is not to blame when the store takes nothing', async () => {
    const inflow = flowing({ maxBytes: 10_000_000 });
    client.write(Buffer.alloc(1_000_000));
    await once(inflow, 'readable');
    const ended = once(inflow, 'close').then(() => 'closed');
    // Three windows pass without progress, but nobody reads: so the sender is not to blame.
    const waited = new Promise((resolve) => setTimeout(() => resolve('still open'), 1_300));
    expect(await Promise.race([ended, waited])).toBe('still open');
  });

  test('is not to blame while room for it is asked for', async () => {
    const asked = Promise.withResolvers<void>();
    const inflow = flowing({ reserveQuota: () => asked.promise });
    client.end('hello');
    const done = read(inflow);
    setTimeout(() => asked.resolve(), 1_300);
    expect(await done).toEqual(['hello', null]);
  });

  test('fails with the first byte too many', async () => {
    const inflow = flowing({ maxBytes: 4 });
    client.write('hello');
    expect(await read(inflow)).toEqual(['', new Error('too long')]);
    expect(source.destroyed).toBe(false);
  });

  test('fails where there is no room', async () => {
    const inflow = flowing({ reserveQuota: (total) => Promise.reject(new Error(`no room for ${total}`)) });
    client.write('hello');
    expect(await read(inflow)).toEqual(['', new Error('no room for 5')]);
  });

  test('fails when its client is gone', async () => {
    const inflow = flowing();
    const done = read(inflow);
    client.write('hello');
    await once(inflow, 'data');
    client.resetAndDestroy();
    expect(await done).toEqual(['hello', expect.any(SourceAbortedError)]);
  });

  test('keeps no more of its first bytes than tell what it is', async () => {
    const inflow = flowing({ maxBytes: 100_000 });
    client.end(Buffer.alloc(50_000, 'x'));
    await read(inflow);
    expect([inflow.firstBytes.length, inflow.receivedBytes]).toEqual([4_100, 50_000]);
  });
});
