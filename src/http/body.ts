import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, type ZlibOptions } from 'node:zlib';
import { KlatchError } from '../errors.ts';
import { Gathered } from './gathered.ts';

type Decompress = (body: Buffer, options: ZlibOptions) => Promise<Buffer>;

const DECOMPRESS: ReadonlyMap<string, Decompress> = new Map([
  ['gzip', promisify<Buffer, ZlibOptions, Buffer>(gunzip)],
  ['x-gzip', promisify<Buffer, ZlibOptions, Buffer>(gunzip)],
  ['deflate', promisify<Buffer, ZlibOptions, Buffer>(inflate)],
  ['br', promisify<Buffer, ZlibOptions, Buffer>(brotliDecompress)],
]);

/**
 * Reads a body whole, whatever its type, and decompresses it where the sender says so; at most `maxBytes` before and
 * after. Throws `too_large`, `unsupported_media` and `invalid_input`.
 *
 * Not body-parser: it answers a body that is too large only after it has read all of it, and asks a client that waits
 * for 100 Continue to send it.
 */
export async function readBody(req: IncomingMessage, res: ServerResponse, maxBytes: number): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const encoding = (req.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  const decompress = DECOMPRESS.get(encoding);
  if (decompress === undefined && encoding !== 'identity') {
    const sentence = 'The Content-Encoding is not supported: use gzip, deflate, br or none';
    throw new KlatchError('unsupported_media', { sentence });
  }
  askForBody(req, res);
  const sent = await readSent(req, maxBytes);
  if (decompress === undefined) return sent;
  try {
    return await decompress(sent, { maxOutputLength: maxBytes });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes);
    throw new KlatchError('invalid_input', { sentence: 'The body is not what its Content-Encoding says', cause });
  }
}

/** A client that waits to be asked for its body sends it. */
export function askForBody(req: IncomingMessage, res: ServerResponse): void {
  if (req.httpVersion === '1.1' && req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue();
}

function readSent(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let body: Gathered | null = new Gathered();
    let bytes = 0;
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) {
        body?.add(chunk);
        return;
      }
      // The rest is read past, so that the sender comes to read the answer; the request's time-out bounds it.
      body = null;
      reject(tooLarge(maxBytes));
    });
    req.once('end', () => resolve(body?.whole() ?? Buffer.alloc(0)));
    const ended = (cause?: Error): void => {
      // Every request closes; this one was read whole.
      if (req.complete) return;
      reject(new KlatchError('invalid_input', { sentence: 'The body ended before it was complete', cause }));
    };
    req.once('error', ended);
    req.once('close', ended);
  });
}

/** A body past `http.max-body`. */
export function tooLarge(maxBytes: number): KlatchError {
  return new KlatchError('too_large', { sentence: `The body is larger than ${maxBytes} bytes (http.max-body)` });
}
