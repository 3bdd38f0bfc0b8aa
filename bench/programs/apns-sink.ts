/**
 * A push service over HTTP/2 that accepts and counts all requests. Arguments: the files of its certificate and key. For
 * `count N` it answers when N more requests have arrived since the last answer.
 */
import { readFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';

const [certFile, keyFile] = process.argv.slice(2);
let seen = 0;
let wanted = Number.POSITIVE_INFINITY;

function answer(): void {
  if (seen < wanted) return;
  seen -= wanted;
  wanted = Number.POSITIVE_INFINITY;
  console.log('done');
}

const server = createSecureServer({
  cert: readFileSync(certFile!),
  key: readFileSync(keyFile!),
  settings: { maxConcurrentStreams: 1_000 },
});
server.on('stream', (stream) => {
  stream.resume();
  stream.once('end', () => {
    stream.respond({ ':status': 200, 'apns-id': '00000000-0000-0000-0000-000000000000' }, { endStream: true });
    seen += 1;
    answer();
  });
});
createInterface({ input: process.stdin }).on('line', (line) => {
  wanted = Number(line.split(' ')[1]);
  answer();
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => process.exit(0));
