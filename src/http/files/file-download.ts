import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Request, Response } from 'express';
import { KlatchError } from '../../errors.ts';
import { pipeAndFreeChunks } from '../../files/pipe-and-free-chunks.ts';
import { KeyedLimiter } from '../../files/keyed-limiter.ts';
import { NotInStoreError, type ByteRange } from '../../files/store.ts';
import type { Services } from '../../operations/core/services.ts';
import type { FileRow } from '../../storage/files/files.ts';
import { exemptFromDeadline } from '../deadline.ts';
import type { AuthorizedFile } from './file-auth.ts';
import { fileHeaders, matchesEtag, parseByteRange, etagOf } from './file-headers.ts';

/** The most downloads at the same time. Each holds an open file, and the bytes that its client has not read yet. */
const MAX_CONCURRENT_DOWNLOADS = 1_000;
/** The most downloads at the same time of one account, or of all receivers of one group. */
const MAX_DOWNLOADS_PER_READER = 64;
/** The time for which a redirected client can use the address in the bucket: long enough to begin the download. */
const REDIRECT_TTL_MS = 5 * 60_000;

/** Sends files to readers that were authorized, a bounded number of files at once. */
export class Downloads {
  readonly #services: Services;
  readonly #slots = new KeyedLimiter<string>({ total: MAX_CONCURRENT_DOWNLOADS, perKey: MAX_DOWNLOADS_PER_READER });

  constructor(services: Services) {
    this.#services = services;
  }

  /**
   * Answers with the file, with a part of it, or with 304 if the client has it. Throws `invalid_range` and
   * `rate_limited`.
   */
  async send(req: Request, res: Response, { file, readerKey: reader }: AuthorizedFile): Promise<void> {
    const headers = fileHeaders(file);
    if (matchesEtag(req.headers['if-none-match'], file.id)) {
      res.writeHead(304, headers).end();
      return;
    }
    const range =
      req.method === 'GET' && rangeApplies(req, file) ? parseByteRange(req.headers.range, file.size) : 'whole';
    if (range === 'none') {
      res.setHeader('content-range', `bytes */${file.size}`);
      throw new KlatchError('invalid_range');
    }
    if (req.method === 'HEAD') {
      res.writeHead(200, { ...headers, 'content-length': file.size }).end();
      return;
    }
    const release = this.#slots.take(reader);
    if (release === null) {
      throw new KlatchError('rate_limited', { sentence: 'Too many downloads are under way; please repeat it later' });
    }
    try {
      await this.#streamFileOrRedirect(req, res, { file, range, headers });
    } finally {
      release();
    }
  }

  async #streamFileOrRedirect(
    req: Request,
    res: Response,
    content: { file: FileRow; range: ByteRange | 'whole'; headers: Record<string, string> },
  ): Promise<void> {
    const { file, range, headers } = content;
    const { fileStore } = this.#services;
    const redirectUrl = await fileStore.downloadUrl(file.id, { forMs: REDIRECT_TTL_MS, headers });
    if (redirectUrl !== null) {
      res
        .writeHead(302, { location: redirectUrl, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
        .end();
      return;
    }
    const partialRange = range === 'whole' ? null : range;
    const length = partialRange === null ? file.size : partialRange.end - partialRange.start + 1;
    // Reads no more bytes than Content-Length announces: the client would take further bytes for the next answer.
    const rangeToRead = partialRange ?? (file.size > 0 ? { start: 0, end: file.size - 1 } : null);
    const fileStream = await fileStore
      .read(file.id, rangeToRead)
      .catch((error: unknown) => this.#logMissingAndRethrow(error));
    // The client has left, or was answered with a time-out.
    if (res.headersSent || res.destroyed) {
      fileStream.destroy();
      return;
    }
    const rangeHeader =
      partialRange === null ? {} : { 'content-range': `bytes ${partialRange.start}-${partialRange.end}/${file.size}` };
    exemptFromDeadline(req);
    res.writeHead(partialRange === null ? 200 : 206, { ...headers, ...rangeHeader, 'content-length': length });
    await this.#stream(fileStream, res, length);
  }

  /** Sends as fast as the client reads. The listener cuts a client that does not read at all. */
  async #stream(bytes: Readable, res: ServerResponse, length: number): Promise<void> {
    const { counts } = this.#services.uploads;
    bytes.on('data', (chunk: Buffer) => (counts.bytesSent += chunk.length));
    try {
      await pipeAndFreeChunks(bytes, res, length);
    } catch (error) {
      // The client left, or the store failed or gave another number of bytes. The answer has begun, so only a cut
      // connection can show the error.
      this.#services.log.debug('a download ended before its time', { error });
      res.destroy();
    }
  }

  #logMissingAndRethrow(error: unknown): never {
    // Logged, since the database says that the file exists: the client is not at fault.
    if (error instanceof NotInStoreError) this.#services.log.error('a file is missing in the store', { error });
    throw error;
  }
}

/**
 * Whether the Range header applies. With If-Range, it applies only if that header holds this file's ETag. Otherwise the
 * client gets the whole file.
 */
function rangeApplies(req: Request, file: FileRow): boolean {
  const condition = req.headers['if-range'];
  return condition === undefined || (typeof condition === 'string' && condition.trim() === etagOf(file.id));
}
