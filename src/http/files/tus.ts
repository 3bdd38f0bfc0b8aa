import type { Request, Response } from 'express';
import { KlatchError } from '../../errors.ts';
import type { UploadStatus } from '../../files/resumable-uploads.ts';
import { isFileKey } from '../../files/store.ts';
import type { AccountId } from '../../model/ids.ts';
import { translateLostRead } from '../../operations/core/database-errors.ts';
import { requireAccount } from '../../operations/core/caller.ts';
import type { Services } from '../../operations/core/services.ts';
import type { Authenticator } from '../authenticator.ts';
import { authenticateForFiles } from './file-auth.ts';
import { announcedBytes, beginUploadBody } from './file-body.ts';
import { mediaType } from '../json-body.ts';
import { sendMethodNotAllowed } from '../responses.ts';

const TUS_VERSION = '1.0.0';
const PART_MEDIA_TYPE = 'application/offset+octet-stream';
const BYTE_COUNT_PATTERN = /^\d{1,15}$/;

/** Headers that pages of other origins may read. */
export const exposedTusHeaders = [
  'Tus-Resumable',
  'Tus-Version',
  'Tus-Extension',
  'Tus-Max-Size',
  'Upload-Offset',
  'Upload-Length',
  'Upload-Metadata',
  'Upload-Expires',
  'Location',
];

/**
 * tus 1.0.0 (tus.io): the core protocol with creation, creation-with-upload, expiration and termination. An upload's id
 * is that of its file.
 *
 * The package @tus/server 2 is not used:
 * - It turns requests into those of the fetch standard, whose streams take a copy and a turn of the event loop for each
 *   chunk.
 * - It has its own locks, its own CORS and its own form of answers.
 */
export class Tus {
  readonly #services: Services;
  readonly #authenticator: Authenticator;

  constructor(services: Services, authenticator: Authenticator) {
    this.#services = services;
    this.#authenticator = authenticator;
  }

  /** Serves `/v1/files/uploads` and the paths below it. */
  async serve(req: Request, res: Response): Promise<void> {
    const id = req.params['id'] as string | undefined;
    const allowed = id === undefined ? ['POST'] : ['HEAD', 'PATCH', 'DELETE'];
    res.setHeader('tus-resumable', TUS_VERSION);
    if (req.method === 'OPTIONS') {
      res.setHeader('tus-version', TUS_VERSION);
      res.setHeader('tus-extension', 'creation,creation-with-upload,expiration,termination');
      res.setHeader('tus-max-size', String(this.#services.config.limits.fileBytes));
    }
    if (!allowed.includes(req.method)) {
      sendMethodNotAllowed(req, res, allowed);
      return;
    }
    if (req.headers['tus-resumable'] !== TUS_VERSION) {
      res.setHeader('tus-version', TUS_VERSION);
      throw new KlatchError('unsupported_tus_version');
    }
    const { accountId } = requireAccount(await authenticateForFiles(this.#authenticator, req, 'messages:write'));
    if (id === undefined) await this.#create(req, res, accountId);
    else if (!isFileKey(id)) throw new KlatchError('file_not_found');
    else await this.#serveExistingUpload(req, res, { id, accountId });
  }

  async #create(req: Request, res: Response, accountId: AccountId): Promise<void> {
    const size = numericHeader(req, 'upload-length');
    const name = fileNameFromMetadata(req.headers['upload-metadata']);
    const hasPart = mediaType(req.headers['content-type']) === PART_MEDIA_TYPE;
    const bytes = announcedBytes(req);
    if (hasPart && bytes !== null && bytes > size) {
      const sentence = `More bytes come than the ${size} that were announced: begin a new upload with the true size`;
      throw new KlatchError('too_large', { sentence });
    }
    const uploads = this.#services.resumableUploads;
    let uploadStatus = await uploads.create({ accountId, name, size });
    // A part is also read for an upload of 0 bytes: a body without a length may bring more bytes than the upload has.
    if (hasPart && bytes !== 0) {
      const part = { offset: 0, announcedChunkBytes: bytes, bytes: () => beginUploadBody(req, res) };
      try {
        uploadStatus = await uploads.append(uploadStatus.id, accountId, part);
      } catch (error) {
        // The client never learns the upload's address, so it cannot continue the upload.
        await this.#services.uploads.discardIfUnattached(uploadStatus.id);
        throw error;
      }
    }
    // The address is relative, so it is right behind any proxy.
    res.setHeader('location', req.path.endsWith('/') ? uploadStatus.id : `uploads/${uploadStatus.id}`);
    if (hasPart) res.setHeader('upload-offset', uploadStatus.offset);
    sendUploadExpiry(res, 201, uploadStatus);
  }

  async #serveExistingUpload(req: Request, res: Response, key: { id: string; accountId: AccountId }): Promise<void> {
    const { id, accountId } = key;
    const uploads = this.#services.resumableUploads;
    if (req.method === 'DELETE') {
      await uploads.remove(id, accountId);
      res.writeHead(204, { 'cache-control': 'no-store' }).end();
      return;
    }
    const uploadStatus =
      req.method === 'HEAD'
        ? await translateLostRead(uploads.endStalledAndGetStatus(id, accountId))
        : await this.#patch(req, res, key);
    res.setHeader('upload-offset', uploadStatus.offset);
    if (req.method === 'HEAD') {
      res.setHeader('upload-length', uploadStatus.size);
      res.setHeader('upload-metadata', `filename ${Buffer.from(uploadStatus.name).toString('base64')}`);
    }
    sendUploadExpiry(res, req.method === 'HEAD' ? 200 : 204, uploadStatus);
  }

  async #patch(req: Request, res: Response, key: { id: string; accountId: AccountId }): Promise<UploadStatus> {
    if (mediaType(req.headers['content-type']) !== PART_MEDIA_TYPE) {
      throw new KlatchError('unsupported_media', { sentence: `A part of an upload is sent as ${PART_MEDIA_TYPE}` });
    }
    const offset = numericHeader(req, 'upload-offset');
    const part = { offset, announcedChunkBytes: announcedBytes(req), bytes: () => beginUploadBody(req, res) };
    return this.#services.resumableUploads.append(key.id, key.accountId, part);
  }
}

function sendUploadExpiry(res: Response, status: number, { expiresAt }: UploadStatus): void {
  if (expiresAt !== null) res.setHeader('upload-expires', expiresAt.toUTCString());
  res.writeHead(status, { 'cache-control': 'no-store', ...(status === 201 ? { 'content-length': 0 } : {}) }).end();
}

function numericHeader(req: Request, header: 'upload-length' | 'upload-offset'): number {
  const text = req.headers[header];
  if (typeof text === 'string' && BYTE_COUNT_PATTERN.test(text)) return Number(text);
  const name = header === 'upload-length' ? 'Upload-Length' : 'Upload-Offset';
  throw new KlatchError('invalid_input', { sentence: `Send the header ${name}, with a whole number of bytes` });
}

/**
 * The file name in the metadata: `filename`, or else `name`. The metadata are pairs of a name and a base64 value, with
 * commas between.
 */
function fileNameFromMetadata(header: string | string[] | undefined): string {
  const text = typeof header === 'string' ? header : '';
  const encodedByName = new Map(
    text.split(',').map((pair) => {
      const [key = '', value = ''] = pair.trim().split(/ +/, 2);
      return [key, value] as const;
    }),
  );
  const encoded = encodedByName.get('filename') ?? encodedByName.get('name') ?? '';
  return Buffer.from(encoded, 'base64').toString('utf8');
}
