import type { FileStoreConfig } from '../config/services.ts';
import { LocalStore } from './local-store.ts';
import { S3Store } from './s3/s3-store.ts';
import type { FileStore } from './store.ts';

/** The configured store. It connects with its first call. */
export function createFileStore(
  { localFilesFolder, s3 }: FileStoreConfig,
  options: { maxFileBytes: number },
): FileStore {
  return s3 === null ? new LocalStore(localFilesFolder) : new S3Store(s3, options);
}
