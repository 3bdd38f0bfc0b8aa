import { AnswerTimeoutError, ProtocolError, ServerError, TooManyPendingRequestsError } from './chat-error.ts';
import { anything, decodeReceived, integer, nullable, objectWithAtLeast, optional, string } from './decode.ts';

/** Something that the server says without being asked. */
export interface Notification {
  readonly method: string;
  readonly params: unknown;
  /** Of the text that it came in. */
  readonly receivedTextLength: number;
}

/** What a client of requests works with. */
interface RpcClientOptions {
  readonly send: (text: string) => void;
  /** Called within `take`, in the order in which texts came. */
  readonly onNotification: (notification: Notification) => void;
  /** Requests under way at the same time. */
  readonly maxPendingRequests: number;
}

interface PendingCall {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** An answer, which has an id, or a notification, which has a method. */
const decodeRpcMessage = objectWithAtLeast({
  id: optional(nullable(integer)),
  result: optional(anything),
  error: optional(
    objectWithAtLeast({ message: string, data: optional(objectWithAtLeast({ code: optional(string) })) }),
  ),
  method: optional(string),
  params: optional(anything),
});

const NOT_JSON_RPC_SENTENCE = 'the server sent something that is not JSON-RPC 2.0';

/** JSON-RPC 2.0 over texts that somebody else carries: requests with their answers, and notifications. */
export class RpcClient {
  readonly #options: RpcClientOptions;
  readonly #pendingById = new Map<number, PendingCall>();
  #lastId = 0;
  #endError: Error | null = null;

  constructor(options: RpcClientOptions) {
    this.#options = options;
  }

  /**
   * Sends a request and resolves with its result. Rejects with ServerError, AnswerTimeoutError, what `end` was
   * called with, and TooManyPendingRequestsError at the bound.
   */
  async call(method: string, params: unknown, timeoutMs: number): Promise<unknown> {
    if (this.#endError !== null) throw this.#endError;
    if (this.#pendingById.size >= this.#options.maxPendingRequests) {
      throw new TooManyPendingRequestsError('there are too many requests under way');
    }
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      const late = (): void => {
        this.#removePending(id)?.reject(
          new AnswerTimeoutError(`the server did not answer ${method} within ${timeoutMs} ms`),
        );
      };
      this.#pendingById.set(id, { resolve, reject, timer: setTimeout(late, timeoutMs) });
      this.#options.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  /** Takes one text of the server. Throws ProtocolError for what is neither an answer nor a notification. */
  receive(text: string): void {
    const { id, result, error, method, params } = decodeReceived(
      decodeRpcMessage,
      parseJson(text),
      NOT_JSON_RPC_SENTENCE,
    );
    if (method !== undefined) return this.#options.onNotification({ method, params, receivedTextLength: text.length });
    if (typeof id === 'number') {
      const pending = this.#removePending(id);
      if (error === undefined) pending?.resolve(result);
      else pending?.reject(new ServerError(error.data?.code, error.message));
      return undefined;
    }
    // Without an id it is about a text that the server could not read, and every text is ours.
    if (id === null && error !== undefined) {
      throw new ProtocolError(`the server could not read a request: ${error.message}`);
    }
    throw new ProtocolError(NOT_JSON_RPC_SENTENCE);
  }

  /** The connection has ended: what is under way is rejected, and everything after. */
  rejectPendingAndFuture(error: Error): void {
    this.#endError ??= error;
    for (const id of this.#pendingById.keys()) this.#removePending(id)?.reject(this.#endError);
  }

  /** An answer that came too late finds nothing. */
  #removePending(id: number): PendingCall | undefined {
    const pending = this.#pendingById.get(id);
    this.#pendingById.delete(id);
    clearTimeout(pending?.timer);
    return pending;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ProtocolError('the server sent something that is not JSON', { cause });
  }
}
