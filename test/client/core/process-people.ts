import type { ServerAddress } from '../../../client/core/address.ts';
import { callOnNewConnection } from '../../../client/core/call-on-new-connection.ts';
import { objectWithAtLeast, string } from '../../../client/core/decode.ts';
import { connectFunctionFor } from '../../../client/node/connect-to.ts';

const decodeSignedIn = objectWithAtLeast({ token: string });

/**
 * Creates an account on a server of the real program, and signs in by a link, as its owner would. Resolves with the
 * token.
 */
export async function signUpByLink(
  server: { operate<Result>(method: string, params?: unknown): Promise<Result> },
  nick: string,
  address: ServerAddress,
): Promise<string> {
  await server.operate('accounts.create', { nick, name: nick });
  const { link } = await server.operate<{ link: string }>('accounts.invite', { user: nick });
  const { token } = await callOnNewConnection(connectFunctionFor(address), {
    method: 'auth.verify',
    params: { link },
    decode: decodeSignedIn,
  });
  return token;
}
