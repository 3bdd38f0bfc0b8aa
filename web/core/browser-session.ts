import { integer, nullable, objectWithAtLeast, optional, string, type Decoded } from '../../client/core/decode.ts';

const decodeAccount = objectWithAtLeast({ id: integer, nick: string, name: string, role: string });

/** The answer of `/v1/session`. Without an account: nobody is signed in, or the proven address has no account yet. */
export const decodeSession = objectWithAtLeast({
  account: optional(nullable(decodeAccount)),
  expires_at: optional(nullable(string)),
});

/** The account of a session. */
export type SignedInAccount = Decoded<typeof decodeAccount>;

/** The session of this browser. */
export interface BrowserSession {
  readonly account: SignedInAccount;
  /** When the session ends even while it is used, as on a shared computer; null: each use extends it. */
  readonly expiresAt: Date | null;
}

/** The session in an answer, or null. */
export function sessionIn({ account, expires_at: end }: Decoded<typeof decodeSession>): BrowserSession | null {
  if (account === undefined || account === null) return null;
  return { account, expiresAt: typeof end === 'string' ? new Date(end) : null };
}
