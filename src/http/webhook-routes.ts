import { Router, type RequestHandler } from 'express';
import type { Log } from '../log.ts';
import type { RefusedPostRecorder } from '../operations/core/refused-post-recorder.ts';
import { recordMisaddressedPost } from './callers/misaddressed-posts.ts';
import { sendJson, sendMethodNotAllowed } from './responses.ts';
import { sendPostError, type PostHandler } from './post-handler.ts';
import type { TokenAuth } from './token-auth.ts';

/** Methods that a misconfigured program uses in place of POST. */
const POST_LIKE_METHODS: ReadonlySet<string> = new Set(['PUT', 'PATCH']);

/** Serves `POST /v1/webhooks/:token`, and `/v1/webhooks/:token/status`. */
export function webhookRoutes(options: {
  tokenAuth: TokenAuth;
  handlePost: PostHandler;
  refusedPosts: RefusedPostRecorder;
  log: Log;
}): Router {
  const { tokenAuth, handlePost, refusedPosts, log } = options;
  const router = Router({ caseSensitive: true });
  router
    .route('/:token')
    .post(withPostErrors(tokenAuth.withPossiblyCachedToken()(handlePost), log))
    .all(
      tokenAuth.withVerifiedToken()(async (req, res, { integration }) => {
        if (POST_LIKE_METHODS.has(req.method)) recordMisaddressedPost(refusedPosts, { req, integration }, 'method');
        sendMethodNotAllowed(req, res, ['POST']);
      }),
    );
  router.all('/:token/status', tokenStatus(tokenAuth));
  return router;
}

/** Wraps a handler of posts, and answers with the errors that it throws. */
export function withPostErrors(handler: RequestHandler, log: Log): RequestHandler {
  return async (req, res, next) => {
    try {
      await handler(req, res, next);
    } catch (error) {
      sendPostError(res, error, log);
    }
  };
}

/** Answers whether a token exists, for any method. An unknown token gets 410 here, and at no other path. */
function tokenStatus(tokenAuth: TokenAuth): RequestHandler {
  return async (req, res) => {
    if ((await tokenAuth.verify(req)) !== null) sendJson(res, 200, { status: 'Ok' });
    else sendJson(res, 410, { message: 'This token no longer exists(or never existed)' });
  };
}
