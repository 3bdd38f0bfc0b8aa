import type { Dispatcher } from 'undici';
import { failedOutcome, transportFailure, parseBoundedRetryAfterMs, type FailedOutcome } from '../outcomes.ts';

/** A vendor's answer, of which at most MAX_RESPONSE_BYTES were read. */
export interface VendorResponse {
  readonly status: number;
  /** The body as JSON; null: the body is not a JSON object. */
  readonly json: Record<string, unknown> | null;
  readonly retryAfterMs: number | null;
}

/** The most bytes of an answer's body that are read. Vendors' answers are much shorter. */
const MAX_RESPONSE_BYTES = 64 * 1024;

/** Sends a request and reads the answer, until the signal aborts and up to MAX_RESPONSE_BYTES. Never rejects. */
export async function readResponse(
  send: (signal: AbortSignal) => Promise<Dispatcher.ResponseData>,
  signal: AbortSignal,
): Promise<VendorResponse | FailedOutcome> {
  try {
    const { statusCode: status, headers, body } = await send(signal);
    const text = await readBounded(body);
    if (text === null) return failedOutcome('answer', { code: status, vendorWide: true });
    return { status, json: parseJsonObject(text), retryAfterMs: parseBoundedRetryAfterMs(headers['retry-after']) };
  } catch (error) {
    return transportFailure(error);
  }
}

/** Parses a text that is a JSON object; null: it is none. */
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
  let receivedBytes = 0;
  for await (const chunk of body) {
    receivedBytes += chunk.length;
    // Leaving the loop destroys the body and its connection.
    if (receivedBytes > MAX_RESPONSE_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
