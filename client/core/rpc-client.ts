import { AnswerTimeoutError, ProtocolError, ServerError, TooManyPendingRequestsError } from './chat-error.ts';
import { anything, decodeReceived, integer, nullable, objectWithAtLeast, optional, string } from './decode.ts';

/** A message of the server that answers no request. */
export interface Notification {
  readonly method: string;
  readonly params: unknown;
  /** The length of the JSON text that contained the notification, in UTF-16 units. */
  readonly receivedTextLength: number;
}

interface RpcClientOptions {
  readonly send: (text: string) => void;
  /** Called within `receive`, in the order of the texts. */
  readonly onNotification: (notification: Notification) => void;
  /** The maximum number of requests that wait for their answers. */
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

const NOT_JSON_RPC_SENTENCE = 'the server sent something that is not JSON-RPC 2.0: check its address';

/** JSON-RPC 2.0 over any connection that carries texts: requests with their answers, and notifications. */
export class RpcClient {
  readonly #options: RpcClientOptions;
  readonly #pendingById = new Map<number, PendingCall>();
  #lastId = 0;
  #endError: Error | null = null;

  constructor(options: RpcClientOptions) {
    this.#options = options;
  }

  /**
   * Sends a request and resolves with its result. Rejects with ServerError, AnswerTimeoutError, the error of
   * `rejectPendingAndFuture`, and TooManyPendingRequestsError at the bound.
   */
  async call(method: string, params: unknown, timeoutMs: number): Promise<unknown> {
    if (this.#endError !== null) throw this.#endError;
    if (this.#pendingById.size >= this.#options.maxPendingRequests) {
      throw new TooManyPendingRequestsError('there are too many requests under way: wait for an answer first');
    }
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      const onAnswerTimeout = (): void => {
        this.#removePending(id)?.reject(
          new AnswerTimeoutError(`the server did not answer ${method} within ${timeoutMs} ms`),
        );
      };
      this.#pendingById.set(id, { resolve, reject, timer: setTimeout(onAnswerTimeout, timeoutMs) });
      this.#options.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  /** Handles one text of the server. Throws ProtocolError where it is neither an answer nor a notification. */
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
    // The server sends an error without an id when it could not read a text of this client.
    if (id === null && error !== undefined) {
      throw new ProtocolError(`the server could not read a request: ${error.message}`);
    }
    throw new ProtocolError(NOT_JSON_RPC_SENTENCE);
  }

  /** Rejects all pending requests and all later ones: the connection has ended. */
  rejectPendingAndFuture(error: Error): void {
    this.#endError ??= error;
    for (const id of this.#pendingById.keys()) this.#removePending(id)?.reject(this.#endError);
  }

  /** Returns undefined if no request with this id waits, as for an answer that came after the timeout. */
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
    throw new ProtocolError('the server sent something that is not JSON: check its address', { cause });
  }
}
