import { PassThrough, type Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { parseErrorResponse, toStoreError } from './s3-errors.ts';
import type { S3Client } from './s3-client.ts';
import {
  isFileKey,
  NotInStoreError,
  StoreUnavailableError,
  type ByteRange,
  type FileKey,
  type StoredObject,
} from '../store.ts';
import { elementContents, escapeXml, firstElementText } from './xml.ts';

/** The prefix of the keys of remainders (bytes of an upload after its last full part). The key of a file has no "/". */
const REMAINDERS_PREFIX = 'uploads/';
const PAGE_SIZE = '1000';

/** A page of the keys of files. `next`: the position of the next page; null: this was the last page. */
interface FileKeyPage {
  readonly files: readonly StoredObject[];
  readonly next: string | null;
}

/** A multipart upload in the store's listing. */
interface FoundUpload {
  readonly key: string;
  readonly uploadId: string;
  readonly startedAt: Date;
}

/** The key of the object with a remainder of an upload. Each remainder has a name of its own. */
export function remainderKey(key: FileKey, name: string): string {
  return `${remainderKeyPrefix(key)}${name}`;
}

function remainderKeyPrefix(key: FileKey): string {
  return `${REMAINDERS_PREFIX}${key}.`;
}

/** The operations of S3 that a store needs; each is one or two requests. */
export class S3Bucket {
  readonly #client: S3Client;

  constructor(client: S3Client) {
    this.#client = client;
  }

  async checkAccess(): Promise<void> {
    await this.#client.requestDocument({ method: 'GET', key: null, query: { 'list-type': '2', 'max-keys': '1' } });
  }

  async put(key: string, body: Buffer): Promise<void> {
    await this.#client.requestHeaders({
      method: 'PUT',
      key,
      body,
      headers: { 'content-type': 'application/octet-stream' },
    });
  }

  async remove(key: string): Promise<void> {
    await this.#ignoreNotFound(this.#client.requestHeaders({ method: 'DELETE', key }));
  }

  /** The size of an object in bytes; null: there is no such object. */
  async size(key: string): Promise<number | null> {
    try {
      const headers = await this.#client.requestHeaders({ method: 'HEAD', key });
      return Number(headers['content-length']);
    } catch (error) {
      if (error instanceof NotInStoreError) return null;
      throw error;
    }
  }

  async read(key: string, range: ByteRange | null): Promise<Readable> {
    const headers: Record<string, string> = range === null ? {} : { range: `bytes=${range.start}-${range.end}` };
    const { status, body } = await this.#client.send({ method: 'GET', key, headers, isDownload: true });
    const out = new PassThrough();
    const isRangeHonored = range === null || status === 206;
    // Without this listener an error would end the process. After `body.destroy()` below, the error is ignored.
    body.on('error', (cause) => (isRangeHonored ? out.destroy(this.#client.toTransferError(cause)) : undefined));
    if (!isRangeHonored) {
      body.destroy();
      throw new StoreUnavailableError(`${this.#client.description} does not give parts of files`);
    }
    // When the reader closes the stream, the request is aborted too.
    out.on('close', () => body.destroy());
    return body.pipe(out);
  }

  /**
   * The text of a short object, trimmed; null: there is no such object. Reads only the first `maxBytes` of a longer
   * object.
   */
  async readText(key: string, maxBytes: number): Promise<string | null> {
    try {
      const content = await buffer(await this.read(key, { start: 0, end: maxBytes - 1 }));
      return content.toString('latin1').trim();
    } catch (error) {
      if (error instanceof NotInStoreError) return null;
      throw error;
    }
  }

  /** Reads the remainder of an upload. Throws NotInStoreError if the object has not `bytes` bytes. */
  async readRemainder(key: FileKey, name: string, bytes: number): Promise<Buffer> {
    const remainder = await buffer(await this.read(remainderKey(key, name), { start: 0, end: bytes - 1 }));
    if (remainder.length === bytes) return remainder;
    throw new NotInStoreError(`${this.#client.description} has lost a part of this upload`);
  }

  /**
   * Removes all remainders of an upload except the one with the name `except`. One page of the listing suffices:
   * crashes do not leave more of them.
   */
  async removeRemainders(key: FileKey, except: string | null): Promise<void> {
    const { objects } = await this.#requestObjectPage(null, remainderKeyPrefix(key));
    const keptKey = except === null ? null : remainderKey(key, except);
    for (const object of objects) if (object.key !== keptKey) await this.remove(object.key);
  }

  async beginUpload(key: FileKey): Promise<string> {
    const headers = { 'content-type': 'application/octet-stream' };
    const document = await this.#client.requestDocument({ method: 'POST', key, query: { uploads: '' }, headers });
    const uploadId = firstElementText(document, 'UploadId');
    if (uploadId === null || uploadId === '') throw this.#unexpectedResponseError();
    return uploadId;
  }

  /** Stores a part, whose number begins with 1. Resolves to the store's ETag of the part. */
  async putPart(key: FileKey, { uploadId, part }: { uploadId: string; part: number }, body: Buffer): Promise<string> {
    const query = { partNumber: String(part), uploadId };
    const { etag } = await this.#client.requestHeaders({ method: 'PUT', key, query, body });
    if (typeof etag !== 'string') throw this.#unexpectedResponseError();
    return etag;
  }

  /** Makes the file of the parts. Rejects with NotInStoreError when the store does not know the upload (any more). */
  async completeUpload(key: FileKey, uploadId: string, etags: readonly string[]): Promise<void> {
    const parts = etags.map(
      (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`,
    );
    const xml = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</CompleteMultipartUpload>`;
    const headers = { 'content-type': 'application/xml' };
    const body = Buffer.from(xml);
    const document = await this.#client.requestDocument({ method: 'POST', key, query: { uploadId }, headers, body });
    // The store may take long to combine the parts. So it answers 200 first, and reports an error only in the body of
    // the answer.
    if (elementContents(document, 'Error').length > 0)
      throw toStoreError(this.#client.description, parseErrorResponse(200, document));
  }

  async abortUpload(key: string, uploadId: string): Promise<void> {
    await this.#ignoreNotFound(this.#client.requestHeaders({ method: 'DELETE', key, query: { uploadId } }));
  }

  /** Lists a page of files, from the first key after `after`. */
  async list(after: string | null): Promise<FileKeyPage> {
    const { objects, last, isTruncated } = await this.#requestObjectPage(after, '');
    return { files: objects.filter(({ key }) => isFileKey(key)), next: isTruncated ? last : null };
  }

  /** Lists a page of the keys of files that have remainders, each key once, from the first one after `after`. */
  async listFileKeysOfRemainders(after: string | null): Promise<FileKeyPage> {
    const { objects, last, isTruncated } = await this.#requestObjectPage(
      after === null ? null : `${REMAINDERS_PREFIX}${after}`,
      REMAINDERS_PREFIX,
    );
    const objectsByFileKey = objects.map((object) => ({
      ...object,
      key: object.key.slice(REMAINDERS_PREFIX.length).split('.', 1)[0]!,
    }));
    const files = new Map(objectsByFileKey.filter(({ key }) => isFileKey(key)).map((object) => [object.key, object]));
    return { files: [...files.values()], next: isTruncated ? last!.slice(REMAINDERS_PREFIX.length) : null };
  }

  /**
   * The multipart uploads of this key that were neither completed nor aborted. The request names the whole key, since
   * some stores list uploads only then.
   */
  async uploadsOf(key: FileKey): Promise<readonly FoundUpload[]> {
    const { uploads } = await this.#requestUploadPage({ prefix: key });
    return uploads.filter((upload) => upload.key === key);
  }

  /** Lists a page of all multipart uploads. `marker`: `next` of the previous page; null: the first page. */
  async listUploads(marker: string | null): Promise<{ uploads: readonly FoundUpload[]; next: string | null }> {
    if (marker === null) return this.#requestUploadPage({});
    const [key = '', uploadId = ''] = JSON.parse(marker) as string[];
    return this.#requestUploadPage({ 'key-marker': key, 'upload-id-marker': uploadId });
  }

  async #requestObjectPage(
    after: string | null,
    prefix: string,
  ): Promise<{ objects: StoredObject[]; last: string | null; isTruncated: boolean }> {
    const query: Record<string, string> = { 'list-type': '2', 'max-keys': PAGE_SIZE };
    if (prefix !== '') query['prefix'] = prefix;
    if (after !== null) query['start-after'] = after;
    const document = await this.#client.requestDocument({ method: 'GET', key: null, query });
    const objects = elementContents(document, 'Contents').map((entry) => ({
      key: firstElementText(entry, 'Key') ?? '',
      size: Number(firstElementText(entry, 'Size')),
      modifiedAt: new Date(firstElementText(entry, 'LastModified') ?? ''),
    }));
    if (objects.some(({ key, size }) => key === '' || !Number.isSafeInteger(size)))
      throw this.#unexpectedResponseError();
    const last = objects.at(-1)?.key ?? null;
    // If the next page would begin where this one did, the listing would never end: that is an error.
    const isTruncated = firstElementText(document, 'IsTruncated') === 'true';
    if (isTruncated && (last === null || (after !== null && last <= after))) throw this.#unexpectedResponseError();
    return { objects, last, isTruncated };
  }

  async #requestUploadPage(
    query: Readonly<Record<string, string>>,
  ): Promise<{ uploads: readonly FoundUpload[]; next: string | null }> {
    const request = { method: 'GET', key: null, query: { uploads: '', 'max-uploads': PAGE_SIZE, ...query } } as const;
    const document = await this.#client.requestDocument(request);
    const uploads = elementContents(document, 'Upload').map((entry) => ({
      key: firstElementText(entry, 'Key') ?? '',
      uploadId: firstElementText(entry, 'UploadId') ?? '',
      startedAt: new Date(firstElementText(entry, 'Initiated') ?? ''),
    }));
    if (firstElementText(document, 'IsTruncated') !== 'true') return { uploads, next: null };
    const next = JSON.stringify([
      firstElementText(document, 'NextKeyMarker') ?? '',
      firstElementText(document, 'NextUploadIdMarker') ?? '',
    ]);
    const requestedMarker = JSON.stringify([query['key-marker'] ?? '', query['upload-id-marker'] ?? '']);
    if (next === requestedMarker) throw this.#unexpectedResponseError();
    return { uploads, next };
  }

  async #ignoreNotFound(work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (!(error instanceof NotInStoreError)) throw error;
    }
  }

  #unexpectedResponseError(): StoreUnavailableError {
    return new StoreUnavailableError(
      `${this.#client.description}: what answers is no S3 store that is understood; look at services.aws.s3.endpoint`,
    );
  }
}
