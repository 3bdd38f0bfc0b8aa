import { ConnectionError } from '../../../client/core/chat-error.ts';
import { decodeReceived } from '../../../client/core/decode.ts';
import { decodeAttachment } from '../../../client/core/shapes.ts';
import type { StoredFile, UploadOptions } from './attachments.ts';
import { parseAnswer, serverErrorIn } from '../server-failure.ts';

/** Larger files are sent in parts, so that a lost connection does not restart them from the beginning. */
const MAX_ONE_REQUEST_BYTES = 5 * 1024 * 1024;

/** Stores a file. Rejects with ServerError, ConnectionError, and the reason of an aborted signal. */
export async function uploadFile(base: URL, file: File, options: UploadOptions): Promise<StoredFile> {
  options.signal.throwIfAborted();
  if (file.size <= MAX_ONE_REQUEST_BYTES) return uploadInOneRequest(base, file, options);
  const uploadInParts = await loadUploadInParts();
  options.signal.throwIfAborted();
  return uploadInParts(base, file, { ...options, errorOf: errorIn });
}

async function loadUploadInParts() {
  try {
    return (await import('./upload-in-parts.ts')).uploadInParts;
  } catch (cause) {
    throw new ConnectionError('a part of this page could not be loaded: try again, or reload the page', { cause });
  }
}

/** Uses XMLHttpRequest, because `fetch` does not report how much was sent. */
function uploadInOneRequest(base: URL, file: File, { onProgress, signal }: UploadOptions): Promise<StoredFile> {
  const url = new URL('v1/files', base);
  url.searchParams.set('name', file.name);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const onAbort = (): void => request.abort();
    signal.addEventListener('abort', onAbort, { once: true });
    request.addEventListener('loadend', () => signal.removeEventListener('abort', onAbort));
    request.upload.addEventListener('progress', ({ loaded }) => onProgress(Math.min(loaded, file.size)));
    request.addEventListener('error', () => reject(new ConnectionError('the connection broke')));
    request.addEventListener('abort', () => reject(signal.reason as Error));
    request.addEventListener('load', () => {
      try {
        resolve(readAnswer(request));
      } catch (error) {
        reject(error);
      }
    });
    request.open('POST', url);
    // Overrides the type that the browser guesses. The server detects the type from the first bytes.
    request.setRequestHeader('content-type', 'application/octet-stream');
    request.send(file);
  });
}

function readAnswer({ status, responseText }: XMLHttpRequest): StoredFile {
  const answer = parseAnswer(responseText);
  if (status !== 201) throw serverErrorIn(answer);
  const errorSentence = 'the server answers an upload in a way that is not known here: load this page again';
  return decodeReceived(decodeAttachment, answer, errorSentence);
}

function errorIn(body: string): Error {
  if (body === '') return new ConnectionError('the connection broke');
  try {
    return serverErrorIn(parseAnswer(body));
  } catch (unreadable) {
    return unreadable as Error;
  }
}
