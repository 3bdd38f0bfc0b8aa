import type { FileStoreConfig } from '../config/services.ts';
import { LocalStore } from './local-store.ts';
import { S3Store } from './s3/s3-store.ts';
import type { FileStore } from './store.ts';

/** Creates the configured store, which connects only when a method is first called. */
export function createFileStore(
  { localFilesFolder, s3 }: FileStoreConfig,
  options: { maxFileBytes: number },
): FileStore {
  return s3 === null ? new LocalStore(localFilesFolder) : new S3Store(s3, options);
}
