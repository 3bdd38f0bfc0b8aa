import type { Dispatcher } from 'undici';
import { failureCategoryOf, codeOrNameOf, ConnectFailure, loggableDetailOf, type FailureCategory } from './failure.ts';
import type { AssignableHandler, ReuseTrackingConnection } from './keep-alive-connection.ts';
import { parseRetryAfter } from './retry-after.ts';

/**
 * The outcome of one POST. If `delivered` is false and `category` is null, the outcome says nothing about the receiver,
 * and `detail` has the reason.
 */
export interface HttpAttemptOutcome {
  readonly delivered: boolean;
  /** Why the attempt failed; null if the request was delivered, or was not sent for a reason of this server. */
  readonly category: FailureCategory | null;
  /** The HTTP status of the answer; null: no headers arrived. */
  readonly code: number | null;
  /** The time from the moment when the request got its connection slot until the outcome, in whole milliseconds. */
  readonly durationMs: number;
  /** The `Retry-After` of an answer other than 2xx, in milliseconds, without an upper bound; null: there is none. */
  readonly retryAfterMs: number | null;
  /**
   * The body of a 2xx answer, or why it is missing. Present only if the caller requested the body (`keptAnswerBytes`).
   */
  readonly answer?: Buffer | MissingAnswer;
  /** For the server's log only: an error code, or the rule of the address policy; never the URL's path or query. */
  readonly detail: string | null;
}

/** Why a requested body is missing: it exceeded its bound, or did not arrive completely in time. */
type MissingAnswer = 'too large' | 'incomplete';

interface AttemptBounds {
  readonly responseHeadersTimeoutMs: number;
  readonly maxResponseBytes: number;
  readonly responseBodyReadMs: number;
}

/** The callbacks of an attempt, and the bound for the body of the answer in its outcome. */
interface AttemptCallbacks {
  /** Hands the request to undici. */
  readonly dispatch: (handler: AssignableHandler) => void;
  /** Called in the tick in which the request is written; false: the attempt does not send it. */
  readonly beforeWrite: (() => boolean) | undefined;
  readonly onSettled: (attempt: AttemptInFlight) => void;
  /** The most bytes of a 2xx answer's body that the outcome may have; undefined: the outcome has no body. */
  readonly keptAnswerBytes: number | undefined;
}

/**
 * The most 1xx answers that an attempt skips. After one more it fails, since such a receiver hardly sends anything
 * else.
 */
const MAX_INTERIM_RESPONSES = 16;

/**
 * One POST in flight: it is undici's handler, has a clock, and may repeat the request after a failure of a reused
 * connection.
 *
 * The clock:
 * - The attempt waits for at most `responseHeadersTimeoutMs` in undici's queue for a connection slot.
 * - From then on, look-up, connecting, a repetition and the answer's headers may take `responseHeadersTimeoutMs`
 *   together. A body for the outcome must end within this time too.
 * - A body that is not for the outcome is read for at most `responseBodyReadMs` after the headers.
 *
 * undici's own timers are off: they tick in half seconds and bound each request, not each attempt.
 *
 * The repetition: a receiver may close an idle connection while this server writes to it. The request is repeated once,
 * on a new socket, if both hold: the socket that failed had carried requests before, and no byte was read from it since
 * this request began.
 */
export class AttemptInFlight implements AssignableHandler {
  readonly #bounds: AttemptBounds;
  readonly #callbacks: AttemptCallbacks;
  readonly #resolve: (attempt: HttpAttemptOutcome) => void;
  readonly #reject: (error: unknown) => void;
  #timer: NodeJS.Timeout;
  #connection: ReuseTrackingConnection | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  #gotConnectionAtMs = 0;
  #isConnectionReused = false;
  #bytesReadBeforeRequest = 0;
  #interimResponses = 0;
  #receivedBodyBytes = 0;
  /** The received chunks of the body for the outcome; null: the outcome has no body. */
  #answerChunks: Buffer[] | null = null;
  #isAnswerComplete = false;
  #statusCode: number | null = null;
  #retryAfterMs: number | null = null;
  #isSettled = false;
  #needsNewSocket = false;

  constructor(
    bounds: AttemptBounds,
    callbacks: AttemptCallbacks,
    promise: { resolve: (attempt: HttpAttemptOutcome) => void; reject: (error: unknown) => void },
  ) {
    this.#bounds = bounds;
    this.#callbacks = callbacks;
    this.#resolve = promise.resolve;
    this.#reject = promise.reject;
    this.#timer = setTimeout(() => this.#onTimeout(), bounds.responseHeadersTimeoutMs);
  }

  get needsNewSocket(): boolean {
    return this.#needsNewSocket;
  }

  assign(connection: ReuseTrackingConnection): boolean {
    if (this.#isSettled) return false;
    if (this.#connection === null) {
      this.#gotConnectionAtMs = performance.now();
      this.#timer.refresh();
    }
    this.#connection = connection;
    return true;
  }

  /** undici calls this right before it writes the request to the socket, in the same tick. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (!this.#isSettled && this.#mayWrite()) {
      this.#isConnectionReused = this.#connection?.beginRequestDetectingReuse() ?? false;
      this.#bytesReadBeforeRequest = this.#connection?.bytesRead ?? 0;
    } else {
      controller.abort(new Error('not sent'));
    }
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    code: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.#isSettled) return;
    if (code < 200) {
      this.#interimResponses += 1;
      if (this.#interimResponses > MAX_INTERIM_RESPONSES) {
        this.#fail('connection', 'too many 1xx answers');
        controller.abort(new Error('too many 1xx answers'));
      }
      return;
    }
    this.#statusCode = code;
    if (code >= 300) this.#retryAfterMs = parseRetryAfter(headers['retry-after'], Date.now());
    else if (this.#callbacks.keptAnswerBytes !== undefined) {
      this.#answerChunks = [];
      return;
    }
    // Nearly every answer is short, and ends in this turn of the event loop. Then no timer is needed.
    queueMicrotask(() => {
      if (this.#isSettled) return;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#onTimeout(), this.#bounds.responseBodyReadMs);
    });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#receivedBodyBytes += chunk.length;
    const maxBytes = this.#answerChunks === null ? this.#bounds.maxResponseBytes : this.#callbacks.keptAnswerBytes!;
    if (this.#receivedBodyBytes <= maxBytes) {
      this.#answerChunks?.push(chunk);
      return;
    }
    this.#settleByStatus();
    controller.abort(new Error('answer cut'));
  }

  onResponseEnd(): void {
    this.#isAnswerComplete = true;
    this.#settleByStatus();
    this.#connection?.release();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#isSettled) return;
    // After the headers have arrived, their status decides the outcome, even if the body breaks off. The exception: the
    // client was stopped before the body for the outcome was complete.
    const isAnswerLostByStop = this.#answerChunks !== null && error instanceof DeliveryClientStopped;
    if (this.#statusCode !== null && !isAnswerLostByStop) this.#settleByStatus();
    else if (codeOrNameOf(error) === 'UND_ERR_INVALID_ARG') this.#settle(() => this.#reject(error));
    else if (error instanceof DeliveryClientStopped) this.#fail(null, error.message);
    else if (this.#mayRetryOnNewSocket(error)) this.#retryOnNewSocket();
    else this.#fail(failureCategoryOf(error), loggableDetailOf(error));
  }

  /** Ends the attempt with an outcome that says nothing about the receiver. */
  stop(): void {
    this.onResponseError(null, new DeliveryClientStopped('stopped'));
    this.#controller?.abort(new Error('stopped'));
  }

  #mayWrite(): boolean {
    try {
      if (this.#callbacks.beforeWrite?.() !== false) return true;
      this.#fail(null, 'not wanted any more');
    } catch (error) {
      this.#settle(() => this.#reject(error));
    }
    return false;
  }

  #mayRetryOnNewSocket(error: Error): boolean {
    if (this.#needsNewSocket || error instanceof ConnectFailure || this.#connection === null) return false;
    // If there is no controller, undici found its idle socket broken before it wrote anything.
    if (this.#controller === null) return true;
    return this.#isConnectionReused && this.#connection.bytesRead === this.#bytesReadBeforeRequest;
  }

  #retryOnNewSocket(): void {
    this.#needsNewSocket = true;
    this.#controller = null;
    // undici is still closing the connection; a microtask runs once that is done.
    queueMicrotask(() => {
      if (!this.#isSettled) this.#callbacks.dispatch(this);
    });
  }

  #onTimeout(): void {
    if (this.#statusCode !== null) this.#settleByStatus();
    else if (this.#connection === null) this.#fail(null, 'no free connection');
    else this.#fail('timeout', this.#controller === null ? 'no connection' : 'no answer');
    // Without a controller the request is not written yet: `onRequestStart` aborts it when its connection opens. The
    // connect time-out bounds that wait.
    this.#controller?.abort(new Error('time-out'));
  }

  #settleByStatus(): void {
    const isSuccess = this.#statusCode !== null && this.#statusCode < 300;
    this.#finish(isSuccess, isSuccess ? null : 'status', null);
  }

  #fail(category: FailureCategory | null, detail: string): void {
    this.#finish(false, category, detail);
  }

  #finish(delivered: boolean, category: FailureCategory | null, detail: string | null): void {
    const durationMs = this.#connection === null ? 0 : Math.round(performance.now() - this.#gotConnectionAtMs);
    this.#settle(() => {
      const outcome = {
        delivered,
        category,
        code: this.#statusCode,
        durationMs,
        retryAfterMs: this.#retryAfterMs,
        detail,
      };
      const chunks = this.#answerChunks;
      this.#resolve(chunks === null ? outcome : { ...outcome, answer: this.#keptAnswer(chunks) });
    });
  }

  #keptAnswer(chunks: readonly Buffer[]): Buffer | MissingAnswer {
    if (this.#receivedBodyBytes > this.#callbacks.keptAnswerBytes!) return 'too large';
    return this.#isAnswerComplete ? Buffer.concat(chunks) : 'incomplete';
  }

  #settle(report: () => void): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    clearTimeout(this.#timer);
    this.#callbacks.onSettled(this);
    report();
  }
}

/** The reason of attempts that ended because the client was stopped. */
class DeliveryClientStopped extends Error {
  override readonly name = 'DeliveryClientStopped';
}
