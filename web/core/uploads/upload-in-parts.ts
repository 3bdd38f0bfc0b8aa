import { DetailedError, Upload } from 'tus-js-client';
import type { StoredFile, UploadOptions } from './attachments.ts';

/** Waits between attempts; progress starts them over. */
const RETRY_DELAYS_MS = [0, 1_000, 3_000, 10_000, 30_000];

interface PartsOptions extends UploadOptions {
  /** Words a failure: the body of the server's answer, empty where there was none. */
  readonly errorOf: (body: string) => Error;
}

/** Stores a file by the resumable protocol: after a cut connection the upload continues where the server has it. */
export function uploadInParts(base: URL, file: File, options: PartsOptions): Promise<StoredFile> {
  const { onProgress, signal, errorOf } = options;
  return new Promise((resolve, reject) => {
    const upload: Upload = new Upload(file, {
      endpoint: new URL('v1/files/uploads', base).href,
      metadata: { filename: file.name },
      retryDelays: RETRY_DELAYS_MS,
      // It would keep the address of the upload in the browser's storage, beyond a sign-out.
      storeFingerprintForResuming: false,
      onProgress,
      onError: (error) => reject(errorOf(bodyOf(error))),
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

function bodyOf(error: Error): string {
  return (error instanceof DetailedError ? error.originalResponse?.getBody() : undefined) ?? '';
}
