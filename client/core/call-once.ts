import { ChatSession, SESSION_BOUNDS } from './chat-session.ts';
import type { Connect } from './connection.ts';
import type { Decoder } from './decode.ts';

/** One request on a connection of its own, as nobody: what it takes to sign in. Rejects as `ChatSession.call` does. */
export async function callOnce<Result>(
  connect: Connect,
  request: { method: string; params: unknown; decode: Decoder<Result> },
): Promise<Result> {
  const { method, params, decode } = request;
  const session = await ChatSession.open(connect, () => {}, SESSION_BOUNDS);
  try {
    return await session.call(method, params, { decode });
  } finally {
    session.close();
    await session.ended;
  }
}
