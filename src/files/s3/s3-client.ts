import { setTimeout as wait } from 'node:timers/promises';
import { Agent, request as send, type Dispatcher } from 'undici';
import type { S3Config } from '../../config/services.ts';
import {
  isRetryable,
  parseErrorResponse,
  MAX_ERROR_BYTES,
  toStoreError,
  unreachableError,
  type S3ErrorResponse,
} from './s3-errors.ts';
import { S3RequestSigner, type S3Request } from './s3-signing.ts';
import { StoreUnavailableError } from '../store.ts';

/** The time-outs and retries of each request to the store. */
export interface S3Bounds {
  readonly connectTimeoutMs: number;
  /**
   * The time-out until the headers of the answer. It is extended by the time that the request's body takes at the
   * minimum speed.
   */
  readonly responseTimeoutMs: number;
  /** The time-out between two chunks of an answer. */
  readonly responseBodyStallTimeoutMs: number;
  /** The delays before the retries of a request. A request is retried as often as there are delays. */
  readonly retryDelaysMs: readonly number[];
}

const DEFAULT_S3_BOUNDS: S3Bounds = {
  connectTimeoutMs: 5_000,
  responseTimeoutMs: 20_000,
  responseBodyStallTimeoutMs: 30_000,
  retryDelaysMs: [200, 800, 3_000],
};

/** The minimum speed at which the store must receive the body of a request. */
const MIN_BYTES_PER_SECOND = 64 * 1024;
/**
 * The most connections for downloads. They are separate from those of other requests, since a download keeps its
 * connection for as long as its reader takes.
 */
const MAX_DOWNLOAD_CONNECTIONS = 1_000;
const MAX_CONNECTIONS = 64;
const MAX_HEADER_BYTES = 16 * 1024;
/** The largest answer document that is read, in bytes. A page of a thousand keys takes about 400 KiB. */
const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;

/** An answer of the store with a status of 2xx. */
interface S3Response {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Dispatcher.ResponseData['body'];
}

/**
 * Sends signed requests to one bucket, and retries each a few times where that may help. All requests of Klatch are
 * safe to retry. Every failure becomes a store error, whose sentence for people contains no secret.
 */
export class S3Client {
  readonly description: string;
  readonly #signing: S3RequestSigner;
  readonly #bounds: S3Bounds;
  readonly #agent: Agent;
  readonly #downloadAgent: Agent;
  readonly #retryAbortController = new AbortController();

  constructor(config: S3Config, bounds: S3Bounds = DEFAULT_S3_BOUNDS) {
    this.description = `the bucket ${config.bucket}`;
    this.#signing = new S3RequestSigner(config);
    this.#bounds = bounds;
    const agentOptions = {
      pipelining: 1,
      maxHeaderSize: MAX_HEADER_BYTES,
      connect: { timeout: bounds.connectTimeoutMs },
      bodyTimeout: bounds.responseBodyStallTimeoutMs,
      // No time-out of undici: the timer in `#send` includes the wait for a connection.
      headersTimeout: 0,
    };
    this.#agent = new Agent({ ...agentOptions, connections: MAX_CONNECTIONS });
    this.#downloadAgent = new Agent({ ...agentOptions, connections: MAX_DOWNLOAD_CONNECTIONS });
  }

  /** Sends a request. The caller must read or destroy the body of the answer. */
  async send(request: S3Request): Promise<S3Response> {
    const { retryDelaysMs } = this.#bounds;
    for (let attempt = 0; ; attempt += 1) {
      const response = await this.#attempt(request);
      if (!('failure' in response)) return response;
      const delayMs = retryDelaysMs[attempt];
      if (!response.isRetryable || delayMs === undefined || this.#retryAbortController.signal.aborted)
        throw response.failure;
      await this.#pause(delayMs * (0.8 + Math.random() * 0.4), response.failure);
    }
  }

  /** Sends a request, and resolves to the XML document in the answer. */
  async requestDocument(request: S3Request): Promise<string> {
    const { body } = await this.send(request);
    return this.#readDocument(body);
  }

  /** Sends a request whose answer has no content, and resolves to the headers of the answer. */
  async requestHeaders(request: S3Request): Promise<S3Response['headers']> {
    const { headers, body } = await this.send(request);
    await this.#readDocument(body);
    return headers;
  }

  signDownloadUrl(key: string, options: { forMs: number; headers: Readonly<Record<string, string>> }): Promise<string> {
    return this.#signing.signDownloadUrl(key, options);
  }

  /** The store error for a connection that failed while an answer was read. */
  toTransferError(cause: unknown): StoreUnavailableError {
    return unreachableError(this.description, this.#signing.host, cause);
  }

  async stop(): Promise<void> {
    this.#retryAbortController.abort();
    await Promise.all([this.#agent.destroy(), this.#downloadAgent.destroy()]);
  }

  async #attempt(request: S3Request): Promise<S3Response | { failure: Error; isRetryable: boolean }> {
    let errorResponse: S3ErrorResponse;
    try {
      const { statusCode: status, headers, body } = await this.#send(request);
      if (status >= 200 && status < 300) return { status, headers, body };
      errorResponse = parseErrorResponse(status, await readText(body, MAX_ERROR_BYTES));
    } catch (cause) {
      return { failure: this.toTransferError(cause), isRetryable: !this.#retryAbortController.signal.aborted };
    }
    return { failure: toStoreError(this.description, errorResponse), isRetryable: isRetryable(errorResponse) };
  }

  /** Sends one attempt of a request. Each attempt is signed again, since a signature is valid only for some minutes. */
  async #send(request: S3Request): Promise<Dispatcher.ResponseData> {
    const { method, body, isDownload } = request;
    const { url, headers } = await this.#signing.sign(request);
    const transferMs = ((body?.length ?? 0) / MIN_BYTES_PER_SECOND) * 1_000;
    const deadline = new AbortController();
    const timeoutError = Object.assign(new Error('no answer in time'), { code: 'TIMEOUT' });
    const timer = setTimeout(() => deadline.abort(timeoutError), this.#bounds.responseTimeoutMs + transferMs);
    try {
      return await send(url, {
        method,
        headers,
        body: body ?? null,
        dispatcher: isDownload === true ? this.#downloadAgent : this.#agent,
        signal: deadline.signal,
      });
    } finally {
      clearTimeout(timer);
    }
  }

  async #readDocument(body: Dispatcher.ResponseData['body']): Promise<string> {
    try {
      return await readText(body, MAX_DOCUMENT_BYTES);
    } catch (cause) {
      throw this.toTransferError(cause);
    }
  }

  async #pause(delayMs: number, failure: Error): Promise<void> {
    try {
      await wait(delayMs, undefined, { signal: this.#retryAbortController.signal });
    } catch {
      throw failure;
    }
  }
}

/** Reads the body of an answer as text. Rejects if the body has more than `maxBytes`, which no store sends. */
async function readText(body: Dispatcher.ResponseData['body'], maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw Object.assign(new Error('the answer is too long'), { code: 'TOO_LONG' });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
