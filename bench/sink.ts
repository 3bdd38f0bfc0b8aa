/** A receiver that counts. Asked `count N`, it answers when it has seen N more requests since it was asked last. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';

let seen = 0;
let wanted = Number.POSITIVE_INFINITY;
const server = createServer((req, res) => {
  req.resume();
  req.on('end', () => {
    res.writeHead(200).end();
    seen += 1;
    if (seen >= wanted) {
      wanted = Number.POSITIVE_INFINITY;
      seen = 0;
      console.log('done');
    }
  });
});
server.keepAliveTimeout = 60_000;
createInterface({ input: process.stdin }).on('line', (line) => {
  wanted = Number(line.split(' ')[1]);
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => process.exit(0));
