import { DetailedError, Upload } from 'tus-js-client';
import { ConnectionError } from '../../client/core/chat-error.ts';
import type { StoredFile, UploadOptions } from './attachments.ts';
import { parseAnswer, serverErrorIn } from './server-failure.ts';

/** Waits between attempts; progress starts them over. */
const RETRY_DELAYS_MS = [0, 1_000, 3_000, 10_000, 30_000];

/** Stores a file by the resumable protocol: after a cut connection the upload continues where the server has it. */
export function uploadInParts(base: URL, file: File, { onProgress, signal }: UploadOptions): Promise<StoredFile> {
  return new Promise((resolve, reject) => {
    const upload: Upload = new Upload(file, {
      endpoint: new URL('v1/files/uploads', base).href,
      metadata: { filename: file.name },
      retryDelays: RETRY_DELAYS_MS,
      // It would keep the address of the upload in the browser's storage, beyond a sign-out.
      storeFingerprintForResuming: false,
      onProgress,
      onError: (error) => reject(readableError(error)),
      onSuccess: () => {
        const id = new URL(upload.url!, base).pathname.split('/').at(-1)!;
        resolve({ id, name: file.name, size: file.size });
      },
    });
    const onAbort = (): void => {
      reject(signal.reason as Error);
      // What arrived is removed. Without a connection it goes after `retention.orphaned-files`.
      void upload.abort(true).catch(() => {});
    };
    signal.addEventListener('abort', onAbort, { once: true });
    upload.start();
  });
}

function readableError(error: Error): Error {
  const body = error instanceof DetailedError ? error.originalResponse?.getBody() : undefined;
  if (body === undefined || body === '') return new ConnectionError('the connection broke', { cause: error });
  try {
    return serverErrorIn(parseAnswer(body));
  } catch (unreadable) {
    return unreadable as Error;
  }
}
