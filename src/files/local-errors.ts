import { NotInStoreError, StoreUnavailableError, StoreFullError } from './store.ts';

const DISK_FULL_CODES = new Set(['ENOSPC', 'EDQUOT']);

/** What a message to people says for an error code of the file system. For other codes it says the code. */
const REASON_BY_ERRNO: Readonly<Record<string, string>> = {
  EACCES: 'the user of the server may not do that there: look at owner and rights of the folder',
  EPERM: 'the user of the server may not do that there: look at owner and rights of the folder',
  EROFS: 'the file system is read-only',
  EIO: 'the disk does not answer as it should: look at the log of the kernel',
  ENOENT: 'the folder is not there: is its file system mounted?',
  ENOTDIR: 'something that is no folder is in the place of one',
  ELOOP: 'a symbolic link is in the place of a file: it is not followed',
  EXDEV: 'the folders within it have to be on one file system',
  EMFILE: 'the server has too many files open: raise its limit',
  ENFILE: 'the machine has too many files open',
  ESTALE: 'the file server has forgotten the folder: mount it again',
  ETIMEDOUT: 'the file server does not answer',
};

/**
 * Translates a failure of the file system into a store error without paths and keys; `description` names the store's
 * folder. Other errors are returned unchanged.
 */
export function toStoreError(error: unknown, description: string): unknown {
  if (!isFileSystemError(error)) return error;
  const code = error.code!;
  if (DISK_FULL_CODES.has(code)) return new StoreFullError(`${description} is full (${code})`, { cause: error });
  const reason = REASON_BY_ERRNO[code] ?? 'the file system refuses';
  return new StoreUnavailableError(`${description}: ${reason} (${code})`, { cause: error });
}

/** True for a failure of the file system with this code, such as `ENOENT`. */
export function isFileSystemErrorWithCode(error: unknown, code: string): boolean {
  return isFileSystemError(error) && error.code === code;
}

/** The error for a file that the store does not have. `description`: the store's name for people. */
export function notInStoreError(description: string): NotInStoreError {
  return new NotInStoreError(`${description} does not have this file`);
}

function isFileSystemError(error: unknown): error is NodeJS.ErrnoException {
  const { syscall, code } = (error ?? {}) as NodeJS.ErrnoException;
  return typeof syscall === 'string' && typeof code === 'string';
}
