import { ConnectionError, ServerError } from '../../client/core/chat-error.ts';
import { decodeReceived, objectWithAtLeast, optional, string } from '../../client/core/decode.ts';

const decodeFailure = objectWithAtLeast({ message: string, code: optional(string) });

export const UNREADABLE_ANSWER = 'the answer is incomplete or no JSON: check the proxy before the server';

/** The error in an answer of the server. Throws ProtocolError if the answer contains none. */
export function serverErrorIn(answer: unknown): ServerError {
  const { code, message } = decodeReceived(
    decodeFailure,
    answer,
    'the server refused the request with an error that this page cannot read: reload the page',
  );
  return new ServerError(code, message);
}

/** Parses an answer of the server. Throws ConnectionError if the answer is no JSON. */
export function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ConnectionError(UNREADABLE_ANSWER, { cause });
  }
}
