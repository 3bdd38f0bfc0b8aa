import { DetailedError, Upload } from 'tus-js-client';
import type { StoredFile, UploadOptions } from './attachments.ts';

/**
 * The waits before the attempts to continue an upload. After each progress the next wait is again the first of these.
 */
const RETRY_DELAYS_MS = [0, 1_000, 3_000, 10_000, 30_000];

/**
 * The status codes after which a request is repeated: the server has another offset (409), or another request still
 * writes (423).
 */
const RETRIED_STATUS_CODES: readonly number[] = [409, 423];

interface PartsOptions extends UploadOptions {
  /** Turns a failure into an error. `body`: the body of the server's answer; empty if there was no answer. */
  readonly errorOf: (body: string) => Error;
}

/**
 * Stores a file by the resumable protocol tus. After a lost connection, the upload continues at the offset that the
 * server has; so does a later attempt with the same `partial`.
 */
export function uploadInParts(base: URL, file: File, options: PartsOptions): Promise<StoredFile> {
  const { onProgress, signal, partial, errorOf } = options;
  return new Promise((resolve, reject) => {
    const upload: Upload = new Upload(file, {
      endpoint: new URL('v1/files/uploads', base).href,
      // If the server has removed the upload at this URL, the library begins a new upload at `endpoint`.
      uploadUrl: partial.url,
      onBeforeRequest: (request) => {
        // Checks the signal, because the library forgets an abort that came before its first request.
        if (request.getMethod() !== 'DELETE') signal.throwIfAborted();
      },
      onAfterResponse: (request, response) => {
        // If a proxy cannot reach the server, it answers with a status from 500 on. Without this error, the library
        // would begin a new upload instead of continuing this one.
        if (request.getMethod() === 'HEAD' && response.getStatus() >= 500) throw new Error('the server is not reached');
      },
      onUploadUrlAvailable: () => {
        partial.url = upload.url;
      },
      metadata: { filename: file.name },
      retryDelays: RETRY_DELAYS_MS,
      onShouldRetry: (error) => isWorthRetry(error.originalResponse?.getStatus() ?? 0),
      // With the value true, the address of the upload would stay in the browser's storage after a sign-out.
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
      // `abort(true)` removes the upload from the server. Without a connection the server removes it after
      // `retention.orphaned-files`.
      void upload.abort(true).catch(() => {});
    };
    signal.addEventListener('abort', onAbort, { once: true });
    upload.start();
  });
}

/**
 * Whether to repeat a request after this status; 0: no answer. The library's own rule gives up while the browser is
 * offline.
 */
function isWorthRetry(status: number): boolean {
  return status < 400 || status >= 500 || RETRIED_STATUS_CODES.includes(status);
}

function bodyOf(error: Error): string {
  return (error instanceof DetailedError ? error.originalResponse?.getBody() : undefined) ?? '';
}
