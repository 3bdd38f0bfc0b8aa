import { setTimeout as wait } from 'node:timers/promises';
import { Agent, request as send, type Dispatcher } from 'undici';
import type { S3Config } from '../config/config.ts';
import {
  isWorthRepeating,
  readRefusal,
  REFUSAL_BYTES,
  refusalError,
  unreachableError,
  type S3Refusal,
} from './s3-failure.ts';
import { S3Signing, type S3Request } from './s3-signing.ts';
import { StoreAwayError } from './store.ts';

/** The bounds of each request. */
export interface S3Bounds {
  readonly connectTimeoutMs: number;
  /** Until the headers of the answer, beside the time that its body takes on a slow line. */
  readonly answerTimeoutMs: number;
  /** Between two pieces of an answer that is read. */
  readonly idleTimeoutMs: number;
  /** Waits before a request is repeated; so many repeats there are. */
  readonly repeatMs: readonly number[];
}

export const S3_BOUNDS: S3Bounds = {
  connectTimeoutMs: 5_000,
  answerTimeoutMs: 20_000,
  idleTimeoutMs: 30_000,
  repeatMs: [200, 800, 3_000],
};

/** A line slower than this, in bytes a second, is taken for one that hangs. */
const SLOWEST_LINE = 64 * 1024;
/** Downloads take one each for as long as their reader takes; they keep nothing else from the store. */
const READ_CONNECTIONS = 1_000;
const CONNECTIONS = 64;
const MAX_HEADER_BYTES = 16 * 1024;
/** A page of a thousand keys takes about 400 KiB. */
const DOCUMENT_BYTES = 8 * 1024 * 1024;

/** An answer that is a success. */
export interface S3Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Dispatcher.ResponseData['body'];
}

/**
 * Signed requests to one bucket, each repeated a few times where that may help. All that are made here may be repeated.
 * Whatever goes wrong becomes one of the errors of a store, with a sentence for people in which no key's value is.
 */
export class S3Client {
  readonly description: string;
  readonly #signing: S3Signing;
  readonly #bounds: S3Bounds;
  readonly #agent: Agent;
  readonly #readAgent: Agent;
  readonly #stopping = new AbortController();

  constructor(config: S3Config, bounds: S3Bounds = S3_BOUNDS) {
    this.description = `the bucket ${config.bucket}`;
    this.#signing = new S3Signing(config);
    this.#bounds = bounds;
    const options = {
      pipelining: 1,
      maxHeaderSize: MAX_HEADER_BYTES,
      connect: { timeout: bounds.connectTimeoutMs },
      bodyTimeout: bounds.idleTimeoutMs,
      // By a clock of our own, which counts the wait for a connection as well.
      headersTimeout: 0,
    };
    this.#agent = new Agent({ ...options, connections: CONNECTIONS });
    this.#readAgent = new Agent({ ...options, connections: READ_CONNECTIONS });
  }

  /** Sends a request whose answer's body is the caller's to read, or to destroy. */
  async send(request: S3Request): Promise<S3Answer> {
    const { repeatMs } = this.#bounds;
    for (let attempt = 0; ; attempt += 1) {
      const answer = await this.#attempt(request);
      if (!('failure' in answer)) return answer;
      const pauseMs = repeatMs[attempt];
      if (!answer.again || pauseMs === undefined || this.#stopping.signal.aborted) throw answer.failure;
      await this.#pause(pauseMs * (0.8 + Math.random() * 0.4), answer.failure);
    }
  }

  /** Sends a request and reads the answer's document. */
  async ask(request: S3Request): Promise<string> {
    const { body } = await this.send(request);
    return this.#document(body);
  }

  /** Sends a request whose answer says nothing but that it is done; resolves to its headers. */
  async tell(request: S3Request): Promise<S3Answer['headers']> {
    const { headers, body } = await this.send(request);
    await this.#document(body);
    return headers;
  }

  link(key: string, options: { forMs: number; headers: Readonly<Record<string, string>> }): Promise<string> {
    return this.#signing.link(key, options);
  }

  /** What a failure in the middle of an answer is for the store. */
  brokenOff(cause: unknown): StoreAwayError {
    return unreachableError(this.description, this.#signing.host, cause);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#agent.destroy(), this.#readAgent.destroy()]);
  }

  async #attempt(request: S3Request): Promise<S3Answer | { failure: Error; again: boolean }> {
    let refusal: S3Refusal;
    try {
      const { statusCode: status, headers, body } = await this.#send(request);
      if (status >= 200 && status < 300) return { status, headers, body };
      refusal = readRefusal(status, await readText(body, REFUSAL_BYTES));
    } catch (cause) {
      return { failure: this.brokenOff(cause), again: !this.#stopping.signal.aborted };
    }
    return { failure: refusalError(this.description, refusal), again: isWorthRepeating(refusal) };
  }

  /** Signed anew for each attempt: a signature is good for some minutes. */
  async #send(request: S3Request): Promise<Dispatcher.ResponseData> {
    const { method, body, isRead } = request;
    const { url, headers } = await this.#signing.sign(request);
    const lineMs = ((body?.length ?? 0) / SLOWEST_LINE) * 1_000;
    const deadline = new AbortController();
    const late = Object.assign(new Error('no answer in time'), { code: 'TIMEOUT' });
    const timer = setTimeout(() => deadline.abort(late), this.#bounds.answerTimeoutMs + lineMs);
    try {
      return await send(url, {
        method,
        headers,
        body: body ?? null,
        dispatcher: isRead === true ? this.#readAgent : this.#agent,
        signal: deadline.signal,
      });
    } finally {
      clearTimeout(timer);
    }
  }

  async #document(body: Dispatcher.ResponseData['body']): Promise<string> {
    try {
      return await readText(body, DOCUMENT_BYTES);
    } catch (cause) {
      throw this.brokenOff(cause);
    }
  }

  async #pause(pauseMs: number, failure: Error): Promise<void> {
    try {
      await wait(pauseMs, undefined, { signal: this.#stopping.signal });
    } catch {
      throw failure;
    }
  }
}

/** An answer that is longer is none that a store gives. */
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
