import type { Config } from '../config/config.ts';
import type { Log } from '../log.ts';
import type { Pool } from '../storage/db/pool.ts';
import { FileTransferCounts } from './file-transfer-counts.ts';
import { fileLinkKey } from './signed-link.ts';
import { ResumableUploads } from './resumable-uploads.ts';
import type { FileStore } from './store.ts';
import { createFileStore } from './create-store.ts';
import { Uploads } from './uploads.ts';

/** The services with which operations and HTTP routes handle files. */
export interface FileServices {
  /** The store with the bytes of files. */
  readonly fileStore: FileStore;
  /** Runs all uploads, and receives files that one request sends as a whole. */
  readonly uploads: Uploads;
  readonly resumableUploads: ResumableUploads;
  /** The key that signs URLs of files (`signed-link.ts`). */
  readonly fileLinkKey: Buffer;
}

export function createFileServices(config: Config, { pool, log }: { pool: Pool; log: Log }): FileServices {
  const { limits, retention } = config;
  const fileStore = createFileStore(config.files, { maxFileBytes: limits.fileBytes });
  const uploads = new Uploads({ pool, store: fileStore, limits, counts: new FileTransferCounts(), log });
  const resumableUploads = new ResumableUploads(uploads, { expireAfterMs: retention.orphanedFilesMs });
  return { fileStore, uploads, resumableUploads, fileLinkKey: fileLinkKey(config.secret) };
}

/**
 * Aborts resumable uploads at once, since their clients can resume, and gives the other uploads `drainTimeoutMs` to
 * complete. Idempotent.
 */
export async function stopUploadsDrainingNonResumable(services: FileServices, drainTimeoutMs: number): Promise<void> {
  services.resumableUploads.abortWriters();
  await services.uploads.stop(drainTimeoutMs);
}
