import * as z from 'zod';
import { KlatchError } from '../errors.ts';
import type { Log } from '../log.ts';
import { publicError } from '../operations/core/database-errors.ts';
import type { Caller } from '../operations/core/caller.ts';
import { FRAME_LIMITS } from '../operations/core/input-limits.ts';
import type { JsonLimits } from '../operations/core/json-limits.ts';
import { callOperation } from '../operations/core/call-operation.ts';
import type { Operation } from '../operations/core/operation.ts';
import { parseJson } from '../operations/core/parse-json.ts';
import type { Services } from '../operations/core/services.ts';

const requestSchema = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string().max(200), z.number(), z.null()]).optional(),
  method: z.string().max(200),
  params: z.unknown().optional(),
});

interface RpcError {
  readonly code: number;
  readonly message: string;
  /** The stable code of the error in this server's list of errors. */
  readonly data?: { readonly code: string };
}

const PARSE_ERROR: RpcError = { code: -32700, message: 'This is not one JSON text' };
const INVALID_REQUEST: RpcError = {
  code: -32600,
  message: 'This is not a JSON-RPC 2.0 request: it needs "jsonrpc": "2.0" and "method"',
};

interface RpcContext {
  readonly services: Services;
  readonly caller: Caller;
  readonly operations: ReadonlyMap<string, Operation>;
  readonly log: Log;
}

/** Serves one JSON-RPC 2.0 request in text form. Resolves to the answer's text, or null for a notification. */
export async function serveRpc(text: string, context: RpcContext): Promise<string | null> {
  const json = parseJsonOrUndefined(text, FRAME_LIMITS);
  return json === undefined ? errorResponse(null, PARSE_ERROR) : serveRequest(json, context);
}

/** The value of a JSON text; undefined when the text is invalid, nested too deep, or holds too many values. */
export function parseJsonOrUndefined(text: string, limits: JsonLimits): unknown {
  try {
    return parseJson(text, limits).value;
  } catch (error) {
    if (error instanceof KlatchError) return undefined;
    throw error;
  }
}

/**
 * Serves one request. Resolves to the answer's text, or null for a notification, which has none. There are no batches:
 * a caller can send several requests without waiting.
 */
export async function serveRequest(json: unknown, context: RpcContext): Promise<string | null> {
  const request = requestSchema.safeParse(json);
  if (!request.success) return errorResponse(null, INVALID_REQUEST);
  const { id, method, params } = request.data;
  try {
    const operation = context.operations.get(method);
    if (operation === undefined)
      return errorResponse(id ?? null, { code: -32601, message: 'There is no such operation' });
    const result = await callOperation(operation, {
      services: context.services,
      caller: context.caller,
      input: params,
    });
    return id === undefined ? null : JSON.stringify({ jsonrpc: '2.0', id, result });
  } catch (error) {
    const shown = publicError(error);
    if (shown.code === 'internal') context.log.error('an operation failed', { operation: method, error });
    return id === undefined ? null : errorResponse(id, rpcError(shown));
  }
}

function rpcError(error: KlatchError): RpcError {
  return { code: error.rpcCode, message: error.message, data: { code: error.code } };
}

function errorResponse(id: string | number | null, error: RpcError): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error });
}
