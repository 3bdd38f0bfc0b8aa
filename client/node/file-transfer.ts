import { request as requestPlain, type IncomingMessage } from 'node:http';
import { request as requestTls } from 'node:https';
import { Transform, type Readable, type TransformCallback } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { ConnectionError, ProtocolError, ServerError } from '../core/chat-error.ts';
import { decodeOrNull, decodeReceived, objectWithAtLeast, optional, string } from '../core/decode.ts';
import { decodeAttachment, type Attachment } from '../core/shapes.ts';

/** The server that stores the files, and the token of the session. */
export interface FileServer {
  /** `http(s)://host`, without `/v1`. */
  readonly baseUrl: string;
  /** The token of the session; the client sends it to this server only. */
  readonly token: string;
}

interface OutgoingFile {
  readonly name: string;
  readonly size: number;
  readonly content: Readable;
  /** Called with the number of bytes that the client has sent. */
  readonly onProgress: (bytesSoFar: number) => void;
}

/** After this time without a byte in either direction, the client treats the server as unreachable. */
const SOCKET_IDLE_TIMEOUT_MS = 30_000;
/** The time that the server has to ask for the body with 100 Continue; after it the client sends the body unasked. */
const MAX_CONTINUE_WAIT_MS = 1_000;
const MAX_JSON_RESPONSE_BYTES = 64 * 1024;
/** A server with files in a bucket redirects its clients to the bucket. One redirect is enough, and cannot loop. */
const MAX_REDIRECTS = 1;

const decodeErrorResponse = objectWithAtLeast({ message: string, code: optional(string) });

/**
 * Stores a file that belongs to no message yet. Throws ServerError, ConnectionError, ProtocolError, and the errors of
 * reading the file.
 */
export function uploadFile(server: FileServer, file: OutgoingFile): Promise<Attachment> {
  return upload(server, file, true);
}

/**
 * `expectsContinue`: waits a second for the server to ask for the body (100 Continue) or to refuse it. A refusal during
 * the transfer of the body can get lost.
 */
async function upload(server: FileServer, file: OutgoingFile, expectsContinue: boolean): Promise<Attachment> {
  const url = new URL(`${server.baseUrl}/v1/files?name=${encodeURIComponent(file.name)}`);
  const request = openRequestWithIdleTimeout(url, 'POST', {
    authorization: `Bearer ${server.token}`,
    'content-type': 'application/octet-stream',
    'content-length': file.size,
    ...(expectsContinue ? { expect: '100-continue' } : {}),
  });
  const answered = awaitResponse(request);
  answered.catch(() => {});
  let fileReadFailure: { readonly error: unknown } | null = null;
  // Listens before the pipeline does: the stream opens the file at once, and the opening can fail.
  file.content.once('error', (error) => {
    fileReadFailure = { error };
    request.destroy();
  });
  // Without this generator, an error later in the pipeline would destroy the file's stream with that error. It would
  // then look as if reading the file had failed.
  const bytes = async function* (): AsyncGenerator<Buffer> {
    yield* file.content;
  };
  const bodyWanted = expectsContinue ? shouldSendBody(request, answered) : Promise.resolve(true);
  const bodySent = bodyWanted.then(async (sendsBody) => {
    if (sendsBody) await pipeline(bytes(), new ProgressTransform(file.onProgress), request);
  });
  bodySent.catch(() => {});
  // If the server stops reading, its answer explains more than the error of the pipeline.
  const response = await Promise.race([answered, bodySent.then(() => answered)]).catch(async (error: unknown) => {
    file.content.destroy();
    if (fileReadFailure !== null) throw fileReadFailure.error;
    return answered.catch(() => {
      throw connectionError(url, error);
    });
  });
  const text = await readResponseText(response);
  request.destroy();
  // Repeats the upload without `Expect`, which a proxy may not support (RFC 9110, 10.1.1).
  if (response.statusCode === 417 && expectsContinue && !(await bodyWanted)) return upload(server, file, false);
  file.content.destroy();
  if (response.statusCode !== 201) throw responseError(response, text);
  const errorSentence =
    'the server answers an upload in a way that this client does not know: check the address, and proxies before it';
  return decodeReceived(decodeAttachment, parseJsonOrNull(text), errorSentence);
}

/** Resolves when the request has its connection; never resolves if the request gets no connection. */
function awaitSocketConnected(request: ReturnType<typeof requestPlain>): Promise<void> {
  return new Promise((resolve) => {
    request.once('socket', (socket) =>
      socket.once(request.protocol === 'https:' ? 'secureConnect' : 'connect', () => resolve()),
    );
  });
}

/** Resolves to true when the client should send the body, and to false if the server has already answered. */
async function shouldSendBody(request: ReturnType<typeof requestPlain>, answered: Promise<unknown>): Promise<boolean> {
  const waitAbort = new AbortController();
  try {
    return await Promise.race([
      answered.then(() => false),
      new Promise<boolean>((resolve) => request.once('continue', () => resolve(true))),
      // Some proxies do not forward the 100 response.
      awaitSocketConnected(request).then(() => wait(MAX_CONTINUE_WAIT_MS, true, { signal: waitAbort.signal })),
    ]);
  } finally {
    waitAbort.abort();
  }
}

/** The bytes of a file as they arrive; `size` null: unknown. Throws ServerError, ConnectionError and ProtocolError. */
export async function downloadFile(
  { baseUrl, token }: FileServer,
  id: string,
): Promise<{ name: string | null; size: number | null; bytes: Readable }> {
  let url = new URL(`${baseUrl}/v1/files/${encodeURIComponent(id)}`);
  let headers: Record<string, string> = { authorization: `Bearer ${token}` };
  for (let redirects = 0; ; redirects += 1) {
    const request = openRequestWithIdleTimeout(url, 'GET', headers);
    request.end();
    const response = await awaitResponse(request).catch((error: unknown) => {
      throw connectionError(url, error);
    });
    const { statusCode, headers: answer } = response;
    if (statusCode === 200) {
      const size = Number(answer['content-length']);
      return {
        name: dispositionFileName(answer['content-disposition']),
        size: Number.isInteger(size) ? size : null,
        bytes: response,
      };
    }
    const redirectUrl = statusCode === 302 || statusCode === 307 ? URL.parse(answer.location ?? '', url.href) : null;
    if (redirectUrl === null || redirects === MAX_REDIRECTS || !/^https?:$/.test(redirectUrl.protocol)) {
      throw responseError(response, await readResponseText(response));
    }
    response.destroy();
    // Sends no token to the bucket: the token is for the server only.
    [url, headers] = [redirectUrl, {}];
  }
}

function openRequestWithIdleTimeout(
  url: URL,
  method: string,
  headers: Record<string, string | number>,
): ReturnType<typeof requestPlain> {
  const request = url.protocol === 'https:' ? requestTls : requestPlain;
  const opened = request(url, { method, headers, agent: false, timeout: SOCKET_IDLE_TIMEOUT_MS });
  opened.once('timeout', () => opened.destroy(new Error('nothing moved for too long')));
  return opened;
}

function awaitResponse(request: ReturnType<typeof requestPlain>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    request.on('error', reject);
    request.once('close', () => reject(new Error('closed without an answer')));
  });
}

async function readResponseText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let receivedBytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      receivedBytes += chunk.length;
      if (receivedBytes > MAX_JSON_RESPONSE_BYTES) {
        throw new ProtocolError(
          "the answer is longer than any of Klatch's: check the address of the server, and proxies before it",
        );
      }
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw new ConnectionError('the server broke off its answer: please repeat it', { cause: error });
  }
  return Buffer.concat(chunks).toString('utf8');
}

function responseError({ statusCode }: IncomingMessage, text: string): Error {
  const errorResponse = decodeOrNull(decodeErrorResponse, parseJsonOrNull(text));
  if (errorResponse !== null) return new ServerError(errorResponse.code, errorResponse.message);
  return new ProtocolError(
    `the server answers about files with status ${statusCode}, which this client does not know: ` +
      'check its address, and proxies before it',
  );
}

function connectionError(url: URL, cause: unknown): ConnectionError {
  const sentence = `${url.origin} cannot be reached, or broke the connection: check the server, and repeat it`;
  return new ConnectionError(sentence, { cause });
}

function parseJsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The file name in a Content-Disposition header (RFC 6266), as sent; null if the header has no readable name. */
function dispositionFileName(disposition: string | undefined): string | null {
  const extended = /filename\*\s*=\s*UTF-8''([^;\s]+)/i.exec(disposition ?? '')?.[1];
  if (extended === undefined) return /filename\s*=\s*"([^"\\]*)"/i.exec(disposition ?? '')?.[1] ?? null;
  try {
    return decodeURIComponent(extended);
  } catch {
    return null;
  }
}

/** Reports the number of bytes that have passed through. */
class ProgressTransform extends Transform {
  readonly #onProgress: (bytesSoFar: number) => void;
  #bytesSoFar = 0;

  constructor(onProgress: (bytesSoFar: number) => void) {
    super();
    this.#onProgress = onProgress;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#bytesSoFar += chunk.length;
    this.#onProgress(this.#bytesSoFar);
    done(null, chunk);
  }
}
