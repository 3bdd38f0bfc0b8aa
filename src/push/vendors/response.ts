import type { Dispatcher } from 'undici';
import { failed, transportFailure, parseBoundedRetryAfterMs, type FailedOutcome } from '../outcomes.ts';

/** A vendor's answer, read within its bounds. */
export interface VendorResponse {
  readonly status: number;
  /** Null: the body is not a JSON object. */
  readonly json: Record<string, unknown> | null;
  readonly retryAfterMs: number | null;
}

/** Bytes of an answer's body; vendors' answers are much shorter. */
const MAX_RESPONSE_BYTES = 64 * 1024;

/** Sends a request and reads its answer, bounded in time by the signal and in bytes. Never rejects. */
export async function readResponse(
  send: (signal: AbortSignal) => Promise<Dispatcher.ResponseData>,
  signal: AbortSignal,
): Promise<VendorResponse | FailedOutcome> {
  try {
    const { statusCode: status, headers, body } = await send(signal);
    const text = await readBounded(body);
    if (text === null) return failed('answer', { code: status, vendorWide: true });
    return { status, json: parseJsonObject(text), retryAfterMs: parseBoundedRetryAfterMs(headers['retry-after']) };
  } catch (error) {
    return transportFailure(error);
  }
}

/** The JSON object in a text; null: there is none. */
export function parseJsonObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    // The answer is not JSON: only its status counts.
    return null;
  }
}

async function readBounded(body: AsyncIterable<Buffer>): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    // Leaving the loop destroys the body, and its connection.
    if (bytes > MAX_RESPONSE_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
