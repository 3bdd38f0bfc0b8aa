import type { z } from 'zod';
import type { ServerAddress } from './address.ts';
import { ChatSession, SESSION_BOUNDS } from './chat-session.ts';

/** One request on a connection of its own, as nobody: what it takes to sign in. Rejects as `ChatSession.call` does. */
export async function callOnce<Schema extends z.ZodType>(
  address: ServerAddress,
  request: { method: string; params: unknown; schema: Schema },
): Promise<z.infer<Schema>> {
  const { method, params, schema } = request;
  const session = await ChatSession.open(address, () => {}, SESSION_BOUNDS);
  try {
    return await session.call(method, params, { schema });
  } finally {
    session.close();
    await session.ended;
  }
}
