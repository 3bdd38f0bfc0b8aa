/**
 * The baseline of the benchmarks of live clients: a bare `ws` server that sends each posted message to every client. It
 * stores nothing and authenticates no client. With an argument, it sends that many messages to each client that
 * connects.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import { changeFrame } from '../live/change-frame.ts';

const kept = Array.from({ length: Number(process.argv[2] ?? 0) }, (_, n) => changeFrame(1, n + 1, `message ${n}`));
let seq = kept.length;

const server = createServer((req, res) => {
  let body = '';
  req.setEncoding('utf8');
  req.on('data', (chunk: string) => {
    body += chunk;
  });
  req.on('end', () => {
    const { text } = JSON.parse(body) as { text: string };
    seq += 1;
    const frame = changeFrame(1, seq, text);
    for (const client of sockets.clients) client.send(frame);
    const answer = JSON.stringify({ status: 'Ok', ok: true, success: true, id: `1:${seq}` });
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer);
  });
});
const sockets = new WebSocketServer({ server, perMessageDeflate: false });
sockets.on('connection', (client) => {
  client.on('error', () => client.terminate());
  for (const frame of kept) client.send(frame);
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 1_024 }, () =>
  console.log((server.address() as AddressInfo).port),
);
process.on('SIGTERM', () => process.exit(0));
