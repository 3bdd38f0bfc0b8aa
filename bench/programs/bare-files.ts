/**
 * The baseline of the files benchmark: streams request bodies into files, and files into answers. Argument: the folder.
 * Prints its port.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

const folder = process.argv[2]!;

const server = createServer((req, res) => {
  const url = new URL(req.url!, 'http://unused');
  const file = join(folder, url.pathname.slice(1));
  // With `?flush` the stream waits until the file is on disk, as the Klatch server does.
  const flush = url.searchParams.has('flush');
  const done =
    req.method === 'PUT'
      ? pipeline(req, createWriteStream(file, { flush })).then(() => res.writeHead(201).end())
      : pipeline(createReadStream(file), res);
  done.catch(() => res.destroy());
});
server.requestTimeout = 0;
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => process.exit(0));
