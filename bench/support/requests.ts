import type { Socket } from 'node:net';

/** The answer of every receiver to every request. */
export const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

/**
 * Reads requests with a Content-Length from a bare socket, and passes the body of each (as Latin-1) to `onRequest`,
 * which sends the answer. No HTTP library is used, since a receiver shares the machine's cores with the measured
 * server.
 */
export function readRequests(socket: Socket, onRequest: (body: string) => void): void {
  let received = '';
  socket.setEncoding('latin1');
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: string) => {
    received += chunk;
    for (;;) {
      const head = received.indexOf('\r\n\r\n');
      if (head === -1) return;
      const end = head + 4 + Number(/\r\ncontent-length: (\d+)/i.exec(received)![1]);
      if (received.length < end) return;
      const body = received.slice(head + 4, end);
      received = received.slice(end);
      onRequest(body);
    }
  });
}
