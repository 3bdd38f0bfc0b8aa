import { DetailedError, Upload } from 'tus-js-client';
import type { StoredFile, UploadOptions } from './attachments.ts';

/** The waits between attempts; after progress they begin again with the first. */
const RETRY_DELAYS_MS = [0, 1_000, 3_000, 10_000, 30_000];

interface PartsOptions extends UploadOptions {
  /** Turns a failure into an error. `body`: the body of the server's answer; empty if there was no answer. */
  readonly errorOf: (body: string) => Error;
}

/**
 * Stores a file by the resumable protocol: after a lost connection the upload continues at the offset that the server
 * has.
 */
export function uploadInParts(base: URL, file: File, options: PartsOptions): Promise<StoredFile> {
  const { onProgress, signal, errorOf } = options;
  return new Promise((resolve, reject) => {
    const upload: Upload = new Upload(file, {
      endpoint: new URL('v1/files/uploads', base).href,
      metadata: { filename: file.name },
      retryDelays: RETRY_DELAYS_MS,
      // With it, the address of the upload would stay in the browser's storage after a sign-out.
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
      // `abort(true)` removes the part on the server. Without a connection the server removes it after
      // `retention.orphaned-files`.
      void upload.abort(true).catch(() => {});
    };
    signal.addEventListener('abort', onAbort, { once: true });
    upload.start();
  });
}

function bodyOf(error: Error): string {
  return (error instanceof DetailedError ? error.originalResponse?.getBody() : undefined) ?? '';
}
