import { Router, type Request, type RequestHandler } from 'express';
import { KlatchError } from '../../errors.ts';
import type { RefusedPostRecorder } from '../../operations/core/refused-post-recorder.ts';
import type { Integration } from '../../storage/groups/integrations.ts';
import type { TokenAuth } from '../token-auth.ts';

const FAULT_SENTENCES = {
  path: "address: nothing takes posts at this path below the group's URL; klatch group info lists the addresses",
  method: "address: the group's URL takes posts by POST alone; this one came by another method",
} as const;

const POST_METHODS: ReadonlySet<string> = new Set(['POST', 'PUT']);
/**
 * The path segments after the token that do not take posts: hooks are managed below `reverse`, and `status` shows the
 * token's status.
 */
const MANAGEMENT_SEGMENTS: ReadonlySet<string> = new Set(['reverse', 'status']);

/** Records a post that was sent to a path, or by a method, that takes none. */
export function recordMisaddressedPost(
  recorder: RefusedPostRecorder,
  { req, integration }: { readonly req: Request; readonly integration: Integration },
  fault: keyof typeof FAULT_SENTENCES,
): void {
  recorder.record({
    conversationId: integration.conversationId,
    userAgent: req.headers['user-agent'] ?? null,
    format: null,
    code: 'not_found',
    sentence: FAULT_SENTENCES[fault],
  });
}

/**
 * Records `POST` and `PUT` to unknown paths below `/v1/webhooks/:token`, whose sender believes that the group gets
 * these posts. The group's owners see them among the refused posts; the answer is the 404 of every unknown path.
 * Mounted after all other routes of posts and hooks.
 */
export function misaddressedPostRoutes(deps: {
  readonly tokenAuth: TokenAuth;
  readonly refusedPosts: RefusedPostRecorder;
}): Router {
  const recordUnknownPathPost: RequestHandler = async (req, _res, next) => {
    if (!POST_METHODS.has(req.method)) return next();
    const { path } = req.params as unknown as { path: readonly string[] };
    const integration = MANAGEMENT_SEGMENTS.has(path[0]!) ? null : await deps.tokenAuth.verify(req);
    if (integration !== null) recordMisaddressedPost(deps.refusedPosts, { req, integration }, 'path');
    throw new KlatchError('not_found');
  };
  const router = Router({ caseSensitive: true });
  // `router.post` and `router.put` are not used: with them, Express would answer OPTIONS.
  router.all('/:token/*path', recordUnknownPathPost);
  return router;
}
