import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { S3Bounds } from '../../src/files/s3/s3-client.ts';
import type { FileKey, FileStore, UploadProgress } from '../../src/files/store.ts';

/** The progress of an upload at its beginning. */
export const NOTHING: UploadProgress = { receivedBytes: 0, state: {} };

/** Makes a key in the form that the server uses. */
export function newKey(): FileKey {
  return randomBytes(16).toString('base64url');
}

/** Stores a file as an upload in one piece. */
export async function storeFile(
  store: FileStore,
  key: FileKey,
  content: string | Buffer | Readable,
): Promise<UploadProgress> {
  const bytes = content instanceof Readable ? content : Readable.from([Buffer.from(content)]);
  const state = await store.prepareStoreForUpload(key);
  const progress = await store.append(
    key,
    { receivedBytes: 0, state },
    { bytes, onProgress: () => {}, isEndOfFile: true },
  );
  await store.finish(key, progress);
  return progress;
}

/** Time limits that are short enough for tests of an unreachable store, and long enough for a busy machine. */
export const S3_TEST_BOUNDS: S3Bounds = {
  connectTimeoutMs: 5_000,
  responseTimeoutMs: 10_000,
  responseBodyStallTimeoutMs: 10_000,
  retryDelaysMs: [10, 20],
};
