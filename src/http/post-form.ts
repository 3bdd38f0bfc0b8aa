import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIgnored, type IgnoredEvent } from '../callers/core/message-form.ts';
import type { SourceKey } from '../model/source-key.ts';
import type { Services } from '../operations/core/services.ts';
import { postMessageReportingIsNew, postMessage } from '../operations/messages/post-webhook.ts';
import { sendContinue, readBody, maxBodySizeExceededError, type BodySizeLimit } from './body.ts';
import { disableTimeoutsUntilAnswered } from './deadline.ts';
import { MultipartReceiver, type MultipartOptions, type ReceivedForm } from './multipart-receiver.ts';
import { parseBudgetExhaustedError } from './responses.ts';
import { nextHopCount, idempotencyKey } from './post-headers.ts';
import { reportedAlert, type ReportedAlert } from './callers/alert-report.ts';
import type { PostWithStoredFiles } from './callers/body-files.ts';
import { reportsAlert } from './callers/caller-input.ts';
import { postContext } from './callers/post-context.ts';
import type { PostSignature } from './callers/post-signature.ts';
import { postFromMultipartFields } from './post-input.ts';
import type { PostWithFiles } from './post-reading.ts';
import type { TokenGrant } from './token-auth.ts';

const MULTIPART_TYPE_PATTERN = /^\s*multipart\/form-data\s*;/i;
const IDENTITY_ENCODING_PATTERN = /^\s*(?:identity\s*)?$/i;

/** Whether the request may be a form with files. A compressed form is read whole, as every other body is. */
function mayHaveFiles({ headers }: IncomingMessage): boolean {
  return (
    MULTIPART_TYPE_PATTERN.test(headers['content-type'] ?? '') &&
    IDENTITY_ENCODING_PATTERN.test(headers['content-encoding'] ?? '')
  );
}

/** A request, its source, and the check of its signatures. `signature` null: the group has no secret. */
export interface PostRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly source: SourceKey;
  readonly signature: PostSignature | null;
}

/**
 * Reads the whole request, and verifies its signatures. Resolves to the message of a multipart form, and to the body of
 * everything else.
 */
export function readFormOrBody(
  services: Services,
  request: PostRequest,
  { grant, size }: { readonly grant: TokenGrant; readonly size: BodySizeLimit },
): Promise<Buffer | PostWithStoredFiles | ReportedAlert | IgnoredEvent> {
  return mayHaveFiles(request.req)
    ? readFormMessageOrBody(services, request, { grant, size })
    : readSignedBody(request, size);
}

function readSignedBody({ req, res, signature }: PostRequest, size: BodySizeLimit): Promise<Buffer> {
  return readBody(req, res, size, { check: signature ?? undefined });
}

/**
 * Resolves to the message of a multipart form, or to the body if it is no form. Discards the form's files before it
 * rejects.
 */
async function readFormMessageOrBody(
  services: Services,
  request: PostRequest,
  { grant, size }: { readonly grant: TokenGrant; readonly size: BodySizeLimit },
): Promise<Buffer | PostWithStoredFiles | ReportedAlert | IgnoredEvent> {
  const { limits, http } = services.config;
  const { req, res, signature } = request;
  if (
    Number(req.headers['content-length'] ?? 0) >
    http.maxBodyBytes + limits.attachmentsPerMessage * limits.fileBytes
  ) {
    throw maxBodySizeExceededError(http.maxBodyBytes);
  }
  const receiver = createReceiver(req, multipartOptions(services, request, grant));
  if (receiver === null) return readSignedBody(request, size);
  sendContinue(req, res);
  const formOrBody = await receiver.read(req).catch((error: unknown) => {
    destroyLater(req, http.requestToResponseTimeoutMs);
    throw error;
  });
  const discard = (): Promise<void> => receiver.discardFiles();
  try {
    signature?.verify();
    if (Buffer.isBuffer(formOrBody)) return formOrBody;
    const post = await webhookMessageOf(services, request, formOrBody);
    if ('message' in post) return { ...post, discardFiles: discard };
    await discard();
    return post;
  } catch (error) {
    await discard();
    throw error;
  }
}

async function webhookMessageOf(
  { config: { limits }, parseBudget }: Services,
  { req, source, signature }: PostRequest,
  form: ReceivedForm,
): Promise<PostWithFiles | ReportedAlert | IgnoredEvent> {
  const attachments = form.files.map(({ attachment }) => attachment.id);
  const hasFiles = attachments.length > 0;
  const context = { hasAttachments: hasFiles, isUnsigned: signature?.isSignatureVerified === false };
  const parse = (): ReturnType<typeof postFromMultipartFields> =>
    postFromMultipartFields(form.fields, postContext(req, limits, context));
  // A form whose files are stored already waits for parse time, since a refusal would lose the files.
  const queueWaitOptions = { maxWaitMs: limits.tokenQueueTimeoutMs, refusal: parseBudgetExhaustedError };
  const parsingPromise = hasFiles
    ? parseBudget.runQueued(source, queueWaitOptions, parse)
    : parseBudget.run(source, parseBudgetExhaustedError, parse);
  const input = await parsingPromise;
  if (isIgnored(input)) return input;
  const idempotencyFields = idempotencyKey(req.headers, form.body ?? canonicalFormBody(form));
  const { files = [], ...post } = input;
  const message = { ...post, ...idempotencyFields, hops: nextHopCount(req.headers, limits.hopLimit) };
  // A post that reports an alert has no files: an edit could not add them.
  if (reportsAlert(input)) return reportedAlert(input, message, (work) => parseBudget.measure(source, work));
  return { message: { ...message, attachments }, files };
}

/**
 * Posts a form, and resolves to the message's id. The form's files are discarded if this rejects. They are also
 * discarded if the post was a repetition, which resolves to the id of an earlier message.
 */
export async function postForm(services: Services, grant: TokenGrant, form: PostWithStoredFiles): Promise<string> {
  if (form.message.attachments.length === 0) return postMessage(services, grant, form.message);
  let isPosted = false;
  try {
    const posted = await postMessageReportingIsNew(services, grant, form.message);
    isPosted = posted.isNew;
    return posted.id;
  } finally {
    // Also if it is unknown whether the message was posted: `discardFiles` keeps a file that a message carries.
    if (!isPosted) await form.discardFiles();
  }
}

function multipartOptions(
  { uploads, config, parseBudget }: Services,
  { req, res, source, signature }: PostRequest,
  { integration }: TokenGrant,
): MultipartOptions {
  const { limits, http } = config;
  return {
    maxBodyBytes: http.maxBodyBytes,
    maxFileBytes: limits.fileBytes,
    maxFiles: limits.attachmentsPerMessage,
    nonFileTimeoutMs: http.requestToResponseTimeoutMs,
    onFirstFile: () => {
      // Finds faults of the headers before anything is stored.
      nextHopCount(req.headers, limits.hopLimit);
      idempotencyKey(req.headers, Buffer.alloc(0));
      disableTimeoutsUntilAnswered(req, res);
    },
    chargeParseTime: (work) => parseBudget.measure(source, work),
    store: (file) => {
      const { accountId, conversationId } = integration;
      return uploads.storeFile({ ...file, accountId, conversationId, announcedBytes: null });
    },
    onChunk: (chunk) => signature?.update(chunk),
    discardFile: (id) => uploads.discardIfUnattached(id),
  };
}

/** Destroys a request `timeoutMs` after its answer. Until then the rest of its body may be read and discarded. */
function destroyLater(req: IncomingMessage, timeoutMs: number): void {
  if (req.complete || req.destroyed) return;
  const timer = setTimeout(() => req.destroy(), timeoutMs);
  req.once('close', () => clearTimeout(timer));
}

/** The receiver of a multipart form; null if the Content-Type names no boundary: the body is no multipart form then. */
function createReceiver(req: IncomingMessage, options: MultipartOptions): MultipartReceiver | null {
  try {
    return new MultipartReceiver({ 'content-type': req.headers['content-type']! }, options);
  } catch {
    return null;
  }
}

/** The content of a form with files, for the hash of its body. The boundary, which differs each time, is left out. */
function canonicalFormBody({ fields, files }: ReceivedForm): Buffer {
  const fileNamesAndHashes = files.map(({ attachment, sha256 }) => [attachment.name, sha256]);
  return Buffer.from(JSON.stringify([[...fields].sort(([a], [b]) => (a < b ? -1 : 1)), fileNamesAndHashes]));
}
