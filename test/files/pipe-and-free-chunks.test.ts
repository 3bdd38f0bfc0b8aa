import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { PassThrough, Readable, Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { pipeAndFreeChunks } from '../../src/files/pipe-and-free-chunks.ts';

const CHUNK = 64 * 1024;
/** The number of chunks: more than the kernel buffers for a socket that nobody reads. */
const CHUNKS = 1_024;
const QUICK = { windowMs: 200, windowBytes: CHUNK };

test('a client that takes a file too slowly is given up, and the file is closed', async () => {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const client = connect((listener.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = await once(listener, 'connection');
  client.pause();
  const source = Readable.from(Array.from({ length: CHUNKS }, () => Buffer.alloc(CHUNK)));
  await expect(pipeAndFreeChunks(source, socket, CHUNK * CHUNKS, QUICK)).rejects.toThrow(
    'its client takes it too slowly',
  );
  expect(source.destroyed).toBe(true);
  socket.destroy();
  client.destroy();
  await new Promise((resolve) => listener.close(resolve));
});

test('the last piece of a file is bounded as well', async () => {
  const sink = new Writable({ write: () => {} });
  await expect(pipeAndFreeChunks(Readable.from([Buffer.alloc(5)]), sink, 5, QUICK)).rejects.toThrow('too slowly');
});

test('a store that is slow is not the fault of the client', async () => {
  const source = new PassThrough();
  const taken: Buffer[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      taken.push(Buffer.from(chunk));
      done();
    },
  });
  const poured = pipeAndFreeChunks(source, sink, 10, { windowMs: 20, windowBytes: 1 });
  source.write('hello');
  await wait(200);
  source.end('again');
  await poured;
  expect(Buffer.concat(taken).toString()).toBe('helloagain');
});
