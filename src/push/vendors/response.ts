import type { Dispatcher } from 'undici';
import { failed, transportFailure, parseBoundedRetryAfterMs, type FailedOutcome } from '../outcomes.ts';

/** An answer of a vendor, as far as it could be read. */
export interface VendorResponse {
  readonly status: number;
  /** Null: the body is no JSON object. */
  readonly json: Record<string, unknown> | null;
  readonly retryAfterMs: number | null;
}

/** Bytes of an answer's body; what vendors say is much shorter. */
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

/** The object that a text is in JSON; null: it is none. */
export function parseJsonObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    // Not JSON: its status is all there is.
    return null;
  }
}

async function readBounded(body: AsyncIterable<Buffer>): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    // Leaving the loop destroys the body, and with it the connection.
    if (bytes > MAX_RESPONSE_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
