import { request as requestPlain, type IncomingMessage } from 'node:http';
import { request as requestTls } from 'node:https';
import { Transform, type Readable, type TransformCallback } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { ConnectionError, ProtocolError, ServerError } from '../core/chat-error.ts';
import { decodeOrNull, decodeReceived, objectWithAtLeast, optional, string } from '../core/decode.ts';
import { decodeAttachment, type Attachment } from '../core/shapes.ts';

/** Where files go and come, and as whom. */
export interface FileServer {
  /** `http(s)://host`, without `/v1`. */
  readonly baseUrl: string;
  /** Of the session. It is sent to this server alone. */
  readonly token: string;
}

/** A file to be uploaded. */
interface OutgoingFile {
  readonly name: string;
  readonly size: number;
  readonly content: Readable;
  /** Told how many bytes went out. */
  readonly onProgress: (bytesSoFar: number) => void;
}

/** After so long without a byte in either direction the server is taken for gone. */
const SOCKET_IDLE_TIMEOUT_MS = 30_000;
/** So long the server is given to ask for the body. */
const MAX_CONTINUE_WAIT_MS = 1_000;
const MAX_JSON_RESPONSE_BYTES = 64 * 1024;
/** A server whose files are in a bucket sends its clients there: once, and not in a circle. */
const MAX_REDIRECTS = 1;

const decodeErrorResponse = objectWithAtLeast({ message: string, code: optional(string) });

/**
 * Stores a file, which no message has yet. Throws ServerError, ConnectionError, ProtocolError, and whatever reading the
 * file fails with.
 */
export function uploadFile(server: FileServer, file: OutgoingFile): Promise<Attachment> {
  return upload(server, file, true);
}

/** `expectsContinue`: for the server to ask for the body. A refusal that comes while bytes are on their way can be lost. */
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
  // Nobody may read it yet, and it opens at once.
  file.content.once('error', (error) => {
    fileReadFailure = { error };
    request.destroy();
  });
  // What fails behind it ends this, and not the file with an error that is none of it.
  const bytes = async function* (): AsyncGenerator<Buffer> {
    yield* file.content;
  };
  const asked = expectsContinue ? shouldSendBody(request, answered) : Promise.resolve(true);
  const sent = asked.then(async (may) => {
    if (may) await pipeline(bytes(), new ProgressTransform(file.onProgress), request);
  });
  sent.catch(() => {});
  // What the server says counts more than that it stopped reading.
  const response = await Promise.race([answered, sent.then(() => answered)]).catch(async (error: unknown) => {
    file.content.destroy();
    if (fileReadFailure !== null) throw fileReadFailure.error;
    return answered.catch(() => {
      throw connectionError(url, error);
    });
  });
  const text = await readResponseText(response);
  request.destroy();
  // Something in between does not know what it is to wait for (RFC 9110, 10.1.1).
  if (response.statusCode === 417 && expectsContinue && !(await asked)) return upload(server, file, false);
  file.content.destroy();
  if (response.statusCode !== 201) throw responseError(response, text);
  const sentence = 'the server answers an upload in a way that this client does not know';
  return decodeReceived(decodeAttachment, parseJsonOrNull(text), sentence);
}

/** Resolves when the request has its connection; never, where there comes to be none. */
function awaitSocketConnected(request: ReturnType<typeof requestPlain>): Promise<void> {
  return new Promise((resolve) => {
    request.once('socket', (socket) =>
      socket.once(request.protocol === 'https:' ? 'secureConnect' : 'connect', () => resolve()),
    );
  });
}

/** Resolves when the body is to be sent: true, or false where there is an answer without it. Rejects as `answered` does. */
async function shouldSendBody(request: ReturnType<typeof requestPlain>, answered: Promise<unknown>): Promise<boolean> {
  const waited = new AbortController();
  try {
    return await Promise.race([
      answered.then(() => false),
      new Promise<boolean>((resolve) => request.once('continue', () => resolve(true))),
      // Not everything in between passes it on.
      awaitSocketConnected(request).then(() => wait(MAX_CONTINUE_WAIT_MS, true, { signal: waited.signal })),
    ]);
  } finally {
    waited.abort();
  }
}

/** The bytes of a file, as they come; `size` null: not told. Throws ServerError, ConnectionError and ProtocolError. */
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
    const next = statusCode === 302 || statusCode === 307 ? URL.parse(answer.location ?? '', url.href) : null;
    if (next === null || redirects === MAX_REDIRECTS || !/^https?:$/.test(next.protocol)) {
      throw responseError(response, await readResponseText(response));
    }
    response.destroy();
    // The token is this server's, and not the bucket's.
    [url, headers] = [next, {}];
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
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MAX_JSON_RESPONSE_BYTES) throw new ProtocolError('the answer of the server is too long');
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw new ConnectionError('the server broke off its answer', { cause: error });
  }
  return Buffer.concat(chunks).toString('utf8');
}

function responseError({ statusCode }: IncomingMessage, text: string): Error {
  const said = decodeOrNull(decodeErrorResponse, parseJsonOrNull(text));
  if (said !== null) return new ServerError(said.code, said.message);
  return new ProtocolError(`the server answers about files with status ${statusCode}, which this client does not know`);
}

function connectionError(url: URL, cause: unknown): ConnectionError {
  return new ConnectionError(`${url.origin} cannot be reached, or broke the connection`, { cause });
}

function parseJsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The name of a Content-Disposition (RFC 6266), as it was sent; null: none. */
function dispositionFileName(disposition: string | undefined): string | null {
  const extended = /filename\*\s*=\s*UTF-8''([^;\s]+)/i.exec(disposition ?? '')?.[1];
  if (extended === undefined) return /filename\s*=\s*"([^"\\]*)"/i.exec(disposition ?? '')?.[1] ?? null;
  try {
    return decodeURIComponent(extended);
  } catch {
    return null;
  }
}

/** Tells how much went through it. */
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
