import { Router, type Request, type RequestHandler, type Response } from 'express';
import { KlatchError } from '../../errors.ts';
import { signUpInBrowser } from '../../operations/auth/auth-sign-up.ts';
import { verifyBrowserSignIn, type VerifyOutput } from '../../operations/auth/auth-verify.ts';
import { endOwnSession } from '../../operations/auth/session-list.ts';
import type { AccountCaller, Caller } from '../../operations/core/caller.ts';
import { callerSource } from '../../operations/core/caller.ts';
import { callOperation } from '../../operations/core/call-operation.ts';
import { ANYBODY_OPERATION_LIMITS } from '../../operations/core/input-limits.ts';
import type { Services } from '../../operations/core/services.ts';
import { klatchCookiesIn } from '../../operations/core/session-cookie.ts';
import type { Authenticator } from '../authenticator.ts';
import { bodySizeLimit, readBody } from '../body.ts';
import { parseJsonBodyAsInput } from '../json-body.ts';
import { sendJson, sendMethodNotAllowed, sendThrownError } from '../responses.ts';
import { requireOwnPage } from './own-page.ts';

const METHODS = ['GET', 'POST', 'DELETE'];

/** A session as the browser gets it: the one that the request came with, or the one that it has opened. */
interface BrowserSession {
  readonly session: number;
  readonly account: { readonly id: number; readonly nick: string; readonly name: string; readonly role: string };
  /** The fixed end of the session; null: the session ends when nobody has used it for 30 days. */
  readonly expires_at: string | null;
}

const NO_SESSION = { session: null, account: null, expires_at: null };

/**
 * Serves `/v1/session`: the session of a browser, in a cookie that no script can read. `POST` signs in with the input
 * of `auth.verify`, or with that of `auth.sign-up`, and answers as they do, without the token. `GET` says who is signed
 * in. `DELETE` signs out.
 */
export function sessionRoutes(services: Services, authenticator: Authenticator): Router {
  const handlers: Readonly<Record<string, (req: Request, res: Response) => Promise<void>>> = {
    GET: (req, res) => showSession(services, authenticator, req, res),
    HEAD: (req, res) => showSession(services, authenticator, req, res),
    POST: (req, res) => signIn(services, authenticator, req, res),
    DELETE: (req, res) => signOut(services, authenticator, req, res),
  };
  const handler: RequestHandler = async (req, res) => {
    const handle = handlers[req.method];
    if (handle === undefined) {
      sendMethodNotAllowed(req, res, METHODS);
      return;
    }
    try {
      // The origin is checked for requests without a cookie too: a page of another origin must not sign a visitor in as
      // somebody else.
      requireOwnPage(req, services.sessionCookie.origin);
      refuseToken(req);
      await handle(req, res);
    } catch (error) {
      sendThrownError(res, error, { log: services.log });
    }
  };
  const router = Router({ caseSensitive: true });
  router.all('/', handler);
  return router;
}

function refuseToken(req: Request): void {
  if (req.headers.authorization === undefined) return;
  throw new KlatchError('invalid_input', {
    sentence:
      'This address works with the session cookie. With a token, call auth.verify, profile.show or sessions.end',
  });
}

async function showSession(
  services: Services,
  authenticator: Authenticator,
  req: Request,
  res: Response,
): Promise<void> {
  const caller = await authenticator.authenticate(req);
  if (caller.kind !== 'account') {
    sendJson(res, 200, NO_SESSION);
    return;
  }
  const { sessionCookie } = services;
  const token = await sessionCookie.tokenAmong(klatchCookiesIn(req.headers.cookie));
  const serialize = await sessionCookie.serializer();
  const shown = shownSession(caller);
  // This request renews a session without a fixed end, so it renews the cookie as well.
  sendJson(res, 200, shown, { 'set-cookie': serialize(token, { isPersistent: shown.expires_at === null }) });
}

function shownSession(caller: AccountCaller): BrowserSession {
  const { sessionId, accountId: id, nick, name, role, expiresAt, isRenewedByUse } = caller;
  const fixedEnd = isRenewedByUse ? null : expiresAt;
  return { session: sessionId, account: { id, nick, name, role }, expires_at: fixedEnd?.toISOString() ?? null };
}

async function signIn(services: Services, authenticator: Authenticator, req: Request, res: Response): Promise<void> {
  const previousCaller = await authenticator.authenticate(req);
  const caller: Caller = { kind: 'anonymous', source: callerSource(previousCaller)!, live: null };
  const body = await readBody(req, res, bodySizeLimit(services.config.http, ANYBODY_OPERATION_LIMITS));
  const createRefusal = (): KlatchError => new KlatchError('rate_limited');
  const input = await services.parseBudget.run(caller.source, createRefusal, () =>
    parseJsonBodyAsInput(req, body, ANYBODY_OPERATION_LIMITS),
  );
  // The serializer of the cookie is made before the code or link is used up: making it may need the database, and may
  // fail.
  const serialize = await services.sessionCookie.serializer();
  const call = { services, caller, input };
  const output = await authenticator.throttleFailedGuesses<VerifyOutput>(
    req,
    'nick' in input ? callOperation(signUpInBrowser, call) : callOperation(verifyBrowserSignIn, call),
  );
  if (output.status === 'sign_up') {
    sendJson(res, 200, output);
    return;
  }
  const { token, ...shown } = output;
  const expiresAt = fixedEndOf(input);
  // A session with a fixed end may be on a shared computer, whose browser must not keep the cookie for the next person.
  const cookie = serialize(token, { isPersistent: expiresAt === null });
  sendJson(res, 200, { ...shown, expires_at: expiresAt }, { 'set-cookie': cookie });
  await endReplacedSession(services, previousCaller);
}

/**
 * The fixed end of a session that was just opened with this valid input, by the clock of this server. Null: each use
 * renews the session.
 */
function fixedEndOf(input: { readonly expires_in_s?: number }): string | null {
  const { expires_in_s: expiresInS } = input;
  return expiresInS === undefined ? null : new Date(Date.now() + expiresInS * 1_000).toISOString();
}

/**
 * Ends the session that the browser had before this sign-in, whose cookie it no longer has. If ending it fails, that
 * session expires by itself.
 */
async function endReplacedSession(services: Services, previousCaller: Caller): Promise<void> {
  if (previousCaller.kind !== 'account') return;
  const endCall = callOperation(endOwnSession, {
    services,
    caller: previousCaller,
    input: { session: previousCaller.sessionId },
  });
  await endCall.catch((error: unknown) =>
    services.log.debug('a session that a sign-in replaced was not ended', { error }),
  );
}

async function signOut(services: Services, authenticator: Authenticator, req: Request, res: Response): Promise<void> {
  const caller = await authenticator.authenticate(req);
  if (caller.kind === 'account') {
    try {
      await callOperation(endOwnSession, { services, caller, input: { session: caller.sessionId } });
    } catch (error) {
      // `not_found`: another request has ended the session at the same moment.
      if (!(error instanceof KlatchError) || error.code !== 'not_found') throw error;
    }
  }
  const serialize = await services.sessionCookie.serializer();
  sendJson(res, 200, NO_SESSION, { 'set-cookie': serialize(null) });
}
