import { afterEach, expect, test } from '@jest/globals';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { ConnectionError, ServerError } from '../../../client/core/chat-error.ts';
import { uploadFile } from '../../../client/node/file-transfer.ts';

const MIB = 1024 * 1024;
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** Starts a server that calls `answer` when the headers of a request have arrived. */
async function serve(answer: (socket: Socket, head: string) => void): Promise<string> {
  const server = createServer((socket) => {
    let head = '';
    socket.on('error', () => {});
    socket.on('data', function read(chunk: Buffer) {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      socket.off('data', read);
      socket.pause();
      answer(socket, head);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function upload(baseUrl: string, bytes: Readable, size = 32 * MIB): { done: Promise<unknown>; sent: () => number } {
  let sent = 0;
  const onProgress = (count: number): void => void (sent = count);
  return {
    done: uploadFile({ baseUrl, token: 't' }, { name: 'a', size, content: bytes, onProgress }),
    sent: () => sent,
  };
}

function zeros(size = 32 * MIB): Readable {
  return Readable.from(
    (function* () {
      for (let left = size; left > 0; left -= MIB) yield Buffer.alloc(Math.min(MIB, left));
    })(),
  );
}

test('a refusal is heard, since nothing is sent before the server asks for it', async () => {
  const body = JSON.stringify({ code: 'too_large', message: 'limits.file-size' });
  const baseUrl = await serve((socket) =>
    socket.end(`HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
  );
  const { done, sent } = upload(baseUrl, zeros());
  await expect(done).rejects.toThrow(new ServerError('too_large', 'limits.file-size'));
  expect(sent()).toBe(0);
});

test('a connection that breaks in the middle is no fault of the file, and a file that breaks none of the connection', async () => {
  const baseUrl = await serve((socket) => {
    socket.write('HTTP/1.1 100 Continue\r\n\r\n');
    socket.once('data', () => socket.resetAndDestroy());
    socket.resume();
  });
  await expect(upload(baseUrl, zeros()).done).rejects.toThrow(ConnectionError);

  const reading = await serve((socket) => {
    socket.write('HTTP/1.1 100 Continue\r\n\r\n');
    socket.resume();
  });
  const broken = Readable.from(
    (async function* () {
      yield Buffer.alloc(MIB);
      throw new Error('the disk is broken');
    })(),
  );
  await expect(upload(reading, broken).done).rejects.toThrow('the disk is broken');
});

test('the body is sent as well where nobody asks for it', async () => {
  const stored = JSON.stringify({ id: 'x'.repeat(22), name: 'a', type: 'text/plain', size: 3 });
  const baseUrl = await serve((socket) => {
    socket.once('data', () =>
      socket.end(`HTTP/1.1 201 Created\r\ncontent-length: ${stored.length}\r\nconnection: close\r\n\r\n${stored}`),
    );
    socket.resume();
  });
  const { done, sent } = upload(baseUrl, Readable.from([Buffer.from('abc')]), 3);
  await expect(done).resolves.toMatchObject({ size: 3 });
  expect(sent()).toBe(3);
});

test('a file that cannot be opened is said to be that, though nothing was asked for yet', async () => {
  const baseUrl = await serve(() => {});
  const broken = new Readable({ read: () => {} });
  const { done } = upload(baseUrl, broken);
  broken.destroy(new Error('it went away'));
  await expect(done).rejects.toThrow('it went away');
});

test('something in between that cannot wait gets the body without being asked to', async () => {
  const stored = JSON.stringify({ id: 'x'.repeat(22), name: 'a', type: 'text/plain', size: 3 });
  const heads: string[] = [];
  const baseUrl = await serve((socket, head) => {
    heads.push(head);
    const [status, body] = /expect:/i.test(head) ? ['417 No', ''] : ['201 Created', stored];
    const answer = `HTTP/1.1 ${status}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`;
    if (body === '' || head.endsWith('abc')) socket.end(answer);
    else socket.once('data', () => socket.end(answer)).resume();
  });
  await expect(upload(baseUrl, Readable.from([Buffer.from('abc')]), 3).done).resolves.toMatchObject({ size: 3 });
  expect(heads).toHaveLength(2);
});
