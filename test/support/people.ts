import { hashSessionToken, newSessionToken } from '../../src/operations/core/session-cache.ts';
import type { AccountId, SessionOrTokenId } from '../../src/model/ids.ts';
import type { Scope } from '../../src/model/scopes.ts';
import { insertSessionOrToken } from '../../src/storage/accounts/sessions.ts';
import type { TestDatabase } from './database.ts';

/** An account with a session on a test's server. */
export interface TestPerson {
  readonly id: number;
  readonly nick: string;
  /** The token of the session. */
  readonly token: string;
  readonly session: SessionOrTokenId;
}

/** The part of a server that is needed for creating accounts. */
interface PeopledServer {
  readonly database: TestDatabase;
  operate<Result>(method: string, params?: unknown): Promise<Result>;
}

/** Creates an account with an operation of the administrator, and inserts a session for it into the database. */
export async function createPerson(
  server: PeopledServer,
  nick: string,
  options: { admin?: boolean; scopes?: readonly Scope[] } = {},
): Promise<TestPerson> {
  const { admin = false, scopes = null } = options;
  const { id } = await server.operate<{ id: number }>('accounts.create', { nick, name: nick, admin });
  return { id, nick, ...(await signIn(server, id, scopes)) };
}

/** Adds a session to an account. */
export async function signIn(
  server: PeopledServer,
  account: number,
  scopes: readonly Scope[] | null = null,
): Promise<{ token: string; session: SessionOrTokenId }> {
  const { token } = newSessionToken(scopes === null ? 'user' : 'bot');
  const session = await server.database.query((sql) =>
    insertSessionOrToken(sql, {
      accountId: account as AccountId,
      tokenHash: hashSessionToken(token),
      label: 'test',
      scopes,
      expiresAt: null,
    }),
  );
  return { token, session };
}
