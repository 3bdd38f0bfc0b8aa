/** A receiver that counts. Asked `count N`, it answers when it has seen N more requests since it was asked last. */
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

let seen = 0;
let wanted = Number.POSITIVE_INFINITY;

function count(): void {
  seen += 1;
  if (seen < wanted) return;
  wanted = Number.POSITIVE_INFINITY;
  seen = 0;
  console.log('done');
}

/** Reads requests with a Content-Length, bare: this process shares the machine's cores with what it measures. */
function serve(socket: Socket): void {
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
      received = received.slice(end);
      socket.write(ANSWER, 'latin1');
      count();
    }
  });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  wanted = Number(line.split(' ')[1]);
});
const server = createServer(serve);
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => process.exit(0));
