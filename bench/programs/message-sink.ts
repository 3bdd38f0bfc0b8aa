/**
 * A receiver that counts messages, one or many in a request, and checks their order. For a line `count N` it answers
 * when N more messages have arrived, with `{"requests","misplaced"}` since the last answer.
 */
import { createServer, type AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { ANSWER, readRequests } from '../support/requests.ts';

interface Delivery {
  readonly data: { readonly message: { readonly seq: number } };
}

let seen = 0;
let requests = 0;
let misplaced = 0;
let lastSeq = 0;
let wanted = Number.POSITIVE_INFINITY;

function note(body: string): void {
  const parsed = JSON.parse(body) as Delivery | Delivery[];
  const deliveries = Array.isArray(parsed) ? parsed : [parsed];
  requests += 1;
  seen += deliveries.length;
  for (const { data } of deliveries) {
    if (data.message.seq !== lastSeq + 1) misplaced += 1;
    lastSeq = data.message.seq;
  }
  answer();
}

function answer(): void {
  if (seen < wanted) return;
  seen -= wanted;
  wanted = Number.POSITIVE_INFINITY;
  console.log(JSON.stringify({ requests, misplaced }));
  requests = 0;
  misplaced = 0;
}

createInterface({ input: process.stdin }).on('line', (line) => {
  wanted = Number(line.split(' ')[1]);
  answer();
});
const server = createServer((socket) =>
  readRequests(socket, (body) => {
    note(body);
    socket.write(ANSWER, 'latin1');
  }),
);
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => process.exit(0));
