import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, type ZlibOptions } from 'node:zlib';
import type { HttpConfig } from '../config/config.ts';
import { KlatchError } from '../errors.ts';
import { maxExpandedBytes, type BodyLimits } from '../operations/core/input-limits.ts';
import { processBodyMemory, type BodyMemory } from './body-memory.ts';
import { GrowingBuffer } from './growing-buffer.ts';

/** Decompressed output comes in pieces of this size, each of which takes a turn of the event loop. */
const DECOMPRESSION_CHUNK_BYTES = 128 * 1_024;

type Decompress = (body: Buffer, options: ZlibOptions) => Promise<Buffer>;

const DECOMPRESS_BY_ENCODING: ReadonlyMap<string, Decompress> = new Map([
  ['gzip', promisify<Buffer, ZlibOptions, Buffer>(gunzip)],
  ['x-gzip', promisify<Buffer, ZlibOptions, Buffer>(gunzip)],
  ['deflate', promisify<Buffer, ZlibOptions, Buffer>(inflate)],
  ['br', promisify<Buffer, ZlibOptions, Buffer>(brotliDecompress)],
]);

/** The most bytes that a body may have. */
export interface BodySizeLimit {
  /** Bounds the body as it was sent, and also the decompressed body. */
  readonly maxBytes: number;
  /** True if the configuration sets the limit; false if the request's own, lower limit does. */
  readonly isFromConfig: boolean;
  /** The configuration key of the limit for events of git hosts; absent for every other limit. */
  readonly configKey?: 'http.max-event-body';
  /** Whether the body may come compressed. */
  readonly allowsCompression: boolean;
}

interface ReadBodyOptions {
  readonly memory?: BodyMemory;
  /** Gets the bytes of the body as they were sent, before it is decompressed. */
  readonly check?: RawBodyCheck | undefined;
}

interface RawBodyCheck {
  /** Takes the next bytes of the body. */
  readonly update: (chunk: Buffer) => void;
  /** Called after the last bytes; an error that it throws refuses the request. */
  readonly verify: () => void;
}

/**
 * Reads a complete body of any type, and decompresses it as its Content-Encoding says. Throws `too_large`,
 * `too_many_large_requests`, `unsupported_media` and `invalid_input`.
 *
 * This is not body-parser, which refuses a body that is too large only after it has read all of it. body-parser even
 * asks a client that waits for 100 Continue to send such a body.
 */
export async function readBody(
  req: IncomingMessage,
  res: ServerResponse,
  size: BodySizeLimit,
  { memory = processBodyMemory, check }: ReadBodyOptions = {},
): Promise<Buffer> {
  const { maxBytes, allowsCompression: compressed } = size;
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw sizeExceededError(size);
  const encoding = (req.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  const decompress = DECOMPRESS_BY_ENCODING.get(encoding);
  if (decompress === undefined && encoding !== 'identity') {
    const sentence = 'The Content-Encoding is not supported: use gzip, deflate, br or none';
    throw new KlatchError('unsupported_media', { sentence });
  }
  if (decompress !== undefined && !compressed) {
    throw new KlatchError('unsupported_media', { sentence: 'Send this body without a Content-Encoding' });
  }
  sendContinue(req, res);
  const raw = await readRawBody(req, size, { memory, check });
  check?.verify();
  if (decompress === undefined) return raw;
  const maxExpanded = maxExpandedBytes(raw.length);
  try {
    return await decompress(raw, {
      maxOutputLength: Math.min(maxBytes, maxExpanded),
      chunkSize: DECOMPRESSION_CHUNK_BYTES,
    });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw maxExpanded < maxBytes ? expansionExceededError(raw.length, maxExpanded) : sizeExceededError(size);
    }
    throw new KlatchError('invalid_input', {
      sentence: 'The body is not what its Content-Encoding says: compress it so, or send it without that header',
      cause,
    });
  }
}

/** Asks a client that waits for 100 Continue to send its body. */
export function sendContinue(req: IncomingMessage, res: ServerResponse): void {
  if (req.httpVersion === '1.1' && req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue();
}

function readRawBody(
  req: IncomingMessage,
  size: BodySizeLimit,
  { memory, check }: Pick<ReadBodyOptions, 'check'> & { readonly memory: BodyMemory },
): Promise<Buffer> {
  return new Promise<Buffer>((resolve, reject) => {
    let body: GrowingBuffer | null = new GrowingBuffer();
    let bytes = 0;
    // After an error, the rest of the body is read and discarded, so that the sender gets to read the answer. The
    // request's time-out bounds how long this takes.
    const fail = (error: Error): void => {
      body = null;
      memoryHandle.release();
      reject(error);
    };
    const memoryHandle = memory.track(() => fail(new KlatchError('too_many_large_requests')));
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= size.maxBytes) {
        body?.append(chunk);
        check?.update(chunk);
        memoryHandle.add(chunk.length);
        return;
      }
      fail(sizeExceededError(size));
    });
    req.once('end', () => {
      memoryHandle.release();
      resolve(body?.toBuffer() ?? Buffer.alloc(0));
    });
    const onIncomplete = (cause?: Error): void => {
      // `close` also follows a request that was read completely.
      if (req.complete) return;
      const sentence = 'The body ended before it was complete: send it again';
      fail(new KlatchError('invalid_input', { sentence, cause }));
    };
    req.once('error', onIncomplete);
    req.once('close', onIncomplete);
  });
}

/** The size limit of a body: the lower one of `http.max-body-size` and the request's own limit. */
export function bodySizeLimit({ maxBodyBytes }: { maxBodyBytes: number }, limits: BodyLimits): BodySizeLimit {
  const isFromConfig = maxBodyBytes <= limits.maxBytes;
  return {
    maxBytes: isFromConfig ? maxBodyBytes : limits.maxBytes,
    isFromConfig,
    allowsCompression: limits.allowsCompression,
  };
}

/** The limit for events of git hosts: the higher one of `http.max-event-body` and `http.max-body-size`. */
export function eventBodySizeLimit({ maxBodyBytes, maxEventBodyBytes }: HttpConfig): BodySizeLimit {
  const maxBytes = Math.max(maxBodyBytes, maxEventBodyBytes);
  return { maxBytes, isFromConfig: true, allowsCompression: true, configKey: 'http.max-event-body' };
}

function sizeExceededError({ maxBytes: bytes, isFromConfig, configKey: key }: BodySizeLimit): KlatchError {
  if (isFromConfig) return maxBodySizeExceededError(bytes, key);
  const sentence = `The body is larger than ${bytes} bytes, which is the most that this request takes`;
  return new KlatchError('too_large', { sentence });
}

/** The error for a body that is larger than the limit under this key of the configuration. */
export function maxBodySizeExceededError(maxBytes: number, key = 'http.max-body-size'): KlatchError {
  return new KlatchError('too_large', { sentence: `The body is larger than ${maxBytes} bytes (${key})` });
}

function expansionExceededError(sentBytes: number, maxExpanded: number): KlatchError {
  const sentence = `The body expands from ${sentBytes} bytes to more than ${maxExpanded}: send it uncompressed`;
  return new KlatchError('too_large', { sentence });
}
