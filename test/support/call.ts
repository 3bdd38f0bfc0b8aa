import type { ErrorCode } from '../../src/errors.ts';

/** Thrown by `callAs` when the server refuses the call of an operation. */
export class CallError extends Error {
  override readonly name = 'CallError';
  readonly status: number;
  readonly code: ErrorCode;

  constructor(status: number, body: { message: string; code: ErrorCode }) {
    super(body.message);
    this.status = status;
    this.code = body.code;
  }
}

/**
 * Calls an operation over `POST /v1/api/<operation>` with a session, or without one. Resolves with its output; rejects
 * with a CallError.
 */
export async function callAs<Output = any>( // oxlint-disable-line typescript/no-explicit-any -- tests compare it whole
  server: { readonly url: string },
  person: { readonly token: string } | null,
  name: string,
  input: object = {},
): Promise<Output> {
  const response = await fetch(`${server.url}/v1/api/${name}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(person === null ? {} : { authorization: `Bearer ${person.token}` }),
    },
    body: JSON.stringify(input),
  });
  const body: unknown = await response.json();
  if (!response.ok) throw new CallError(response.status, body as { message: string; code: ErrorCode });
  return body as Output;
}
