import type { IgnoredEvent } from '../callers/core/message-form.ts';
import { KlatchError } from '../errors.ts';
import type { SourceKey } from '../model/source-key.ts';
import { GIT_EVENT_LIMITS, WEBHOOK_POST_LIMITS } from '../operations/core/input-limits.ts';
import type { ParseBudget } from '../operations/core/parse-budget.ts';
import type { Services } from '../operations/core/services.ts';
import { bodySizeLimit, eventBodySizeLimit } from './body.ts';
import type { ReportedAlert } from './callers/alert-report.ts';
import { storeBodyFiles, type PostWithStoredFiles } from './callers/body-files.ts';
import { callerRouteOf } from './callers/caller-route.ts';
import { mayBeGitEvent, postContext } from './callers/post-context.ts';
import { createPostSignature } from './callers/post-signature.ts';
import { LARGE_BODY_BYTES, type LargePostReader, type ThreadTimeCharger } from './large-posts/large-post-reader.ts';
import { readFormOrBody, type PostRequest } from './post-form.ts';
import { isMultipartForm } from './post-input.ts';
import { readFormFields, readPost, type PostWithFiles } from './post-reading.ts';
import { parseBudgetExhaustedError } from './responses.ts';
import type { TokenGrant } from './token-auth.ts';

/** The result of reading a body that is no form with files. `release` is present if a thread writes the texts. */
type PostReadResult = PostWithFiles | (ReportedAlert & { readonly release?: () => void }) | IgnoredEvent;

/** Reads a post and verifies its signatures. `bodyReadBefore` is the body, if it was read already to find the token. */
type PostReceiver = (
  request: Omit<PostRequest, 'signature'>,
  grant: TokenGrant,
  bodyReadBefore: Buffer | undefined,
) => Promise<PostReadResult | PostWithStoredFiles>;

export function createPostReceiver(services: Services, largePosts: LargePostReader): PostReceiver {
  const { parseBudget, config } = services;
  const { limits, http } = config;
  const size = bodySizeLimit(http, WEBHOOK_POST_LIMITS);
  const gitEventSizeLimit = eventBodySizeLimit(http);
  // A form is read in two steps with a wait between them. Each step is charged to the source's parse budget separately:
  // in one piece, the second step would be charged to no source.
  const read = ({ req, source, signature }: PostRequest, body: Buffer): Promise<PostReadResult> => {
    const isUnsigned = signature?.isSignatureVerified === false;
    const context = postContext(req, limits, { isUnsigned });
    if (body.length > LARGE_BODY_BYTES) {
      const jsonLimits = mayBeGitEvent(req) ? GIT_EVENT_LIMITS : WEBHOOK_POST_LIMITS;
      return largePosts.read(body, { ...context, jsonLimits }, threadTimeCharger(parseBudget, source));
    }
    const withBudget = <T>(work: () => T | Promise<T>): Promise<T> =>
      parseBudget.run(source, parseBudgetExhaustedError, work);
    const readPostWithFields = (fields: ReadonlyMap<string, string> | null): Promise<PostReadResult> =>
      withBudget(() => readPost({ body, fields }, context, (work) => parseBudget.measure(source, work)));
    if (!isMultipartForm(body, req.headers['content-type'])) return readPostWithFields(null);
    return withBudget(() => readFormFields(body, req.headers)).then(readPostWithFields);
  };
  return async ({ req, res, source }, grant, bodyReadBefore) => {
    try {
      const signature = createPostSignature(req, grant.integration.incomingSecret, callerRouteOf(req)?.format ?? null);
      const request = { req, res, source, signature };
      if (bodyReadBefore !== undefined) signature?.verifyBody(bodyReadBefore);
      const received =
        bodyReadBefore ??
        (await readFormOrBody(services, request, { grant, size: mayBeGitEvent(req) ? gitEventSizeLimit : size }));
      const post = Buffer.isBuffer(received) ? await read(request, received) : received;
      if (!('message' in post) || post.files === undefined || post.files.length === 0) return post;
      return await storeBodyFiles(services, grant.integration, post.message, post.files);
    } catch (error) {
      return revalidateTokenAndReject(services, grant, error);
    }
  };
}

/**
 * Rejects with the error of a post that cannot be read, after the token was checked in the database. The message log
 * checks only the tokens of posts that it writes. A sender whose token was rotated on another node must learn nothing
 * about the body.
 */
async function revalidateTokenAndReject(
  { tokens }: Services,
  { token, integration: remembered }: TokenGrant,
  error: unknown,
): Promise<never> {
  if (!(error instanceof KlatchError) || error.status === 503) throw error;
  // Undefined: the database cannot be reached, so the error of the body is reported.
  const integration = await tokens.findBypassingCache(token).catch(() => undefined);
  if (integration === null) throw new KlatchError('invalid_token');
  if (integration?.archived === true) throw new KlatchError('group_archived');
  // The signatures of the post were checked with a secret that was changed meanwhile.
  if (integration !== undefined && integration.admission !== remembered.admission)
    throw new KlatchError('signing_changed');
  throw error;
}

/** Charges time of the thread to the source like time of the event loop. */
function threadTimeCharger(parseBudget: ParseBudget, source: SourceKey): ThreadTimeCharger {
  return {
    requireBudget: () => {
      if (!parseBudget.hasTimeLeft(source)) throw parseBudgetExhaustedError();
    },
    charge: (ms) => parseBudget.chargeUncapped(source, ms),
  };
}
