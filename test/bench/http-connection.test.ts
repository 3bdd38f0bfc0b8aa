import { createServer, type AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { HttpConnection, requestOf } from '../../bench/support/http-connection.ts';
import { eventually } from '../support/eventually.ts';

test('a request over a connection that the server has closed is refused at once, not never answered', async () => {
  const server = createServer((socket) => {
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const connection = await HttpConnection.open('127.0.0.1', (server.address() as AddressInfo).port);
    expect(await connection.ask(requestOf('/', {}))).toBe(200);
    await eventually(
      () => connection.isOpen,
      (isOpen) => !isOpen,
    );
    await expect(connection.ask(requestOf('/', {}))).rejects.toThrow('the connection was closed before the request');
  } finally {
    server.close();
  }
});
