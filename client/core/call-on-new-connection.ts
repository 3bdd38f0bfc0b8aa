import { ChatSession, DEFAULT_SESSION_BOUNDS } from './chat-session.ts';
import type { ConnectFunction } from './connection.ts';
import type { Decoder } from './decode.ts';

/**
 * Makes one request without a session, on a connection of its own, as a sign-in needs. Rejects as `ChatSession.call`
 * does.
 */
export async function callOnNewConnection<Result>(
  connect: ConnectFunction,
  request: { method: string; params: unknown; decode: Decoder<Result> },
): Promise<Result> {
  const { method, params, decode } = request;
  const session = await ChatSession.open(connect, () => {}, DEFAULT_SESSION_BOUNDS);
  try {
    return await session.call(method, params, { decode });
  } finally {
    session.close();
    await session.ended;
  }
}
