/**
 * A receiver that counts requests. For a line `count N` it answers when N more requests have arrived since the last
 * answer.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { ANSWER, readRequests } from '../support/requests.ts';

let seen = 0;
let wanted = Number.POSITIVE_INFINITY;

function count(): void {
  seen += 1;
  if (seen < wanted) return;
  wanted = Number.POSITIVE_INFINITY;
  seen = 0;
  console.log('done');
}

function serve(socket: Socket): void {
  readRequests(socket, () => {
    socket.write(ANSWER, 'latin1');
    count();
  });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  wanted = Number(line.split(' ')[1]);
});
const server = createServer(serve);
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => process.exit(0));
