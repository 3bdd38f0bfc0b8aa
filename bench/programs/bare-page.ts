/**
 * The baseline of the browser client: a page without a library that shows the newest 50 messages of a Klatch server.
 * The program forwards the page's calls to that server. Arguments: the address of the server, and the token of a
 * session.
 */
import { Agent, createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

const [klatch, token] = process.argv.slice(2) as [string, string];
const html = readFileSync(join(import.meta.dirname, '../web/page/bare.html'));
const agent = new Agent({ keepAlive: true });

function passOn(req: IncomingMessage, res: ServerResponse): void {
  const operation = req.url!.slice('/call/'.length);
  const headers = {
    'content-type': 'application/json',
    'content-length': req.headers['content-length'],
    authorization: `Bearer ${token}`,
  };
  const call = request(`${klatch}/v1/api/${operation}`, { method: 'POST', agent, headers }, (answer) => {
    res.writeHead(answer.statusCode!, { 'content-type': 'application/json' });
    answer.pipe(res);
  });
  call.on('error', () => res.destroy());
  req.pipe(call);
}

const server = createServer((req, res) => {
  if (req.url!.startsWith('/call/')) passOn(req, res);
  else res.writeHead(200, { 'content-type': 'text/html', 'content-length': html.length }).end(html);
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
  agent.destroy();
});
