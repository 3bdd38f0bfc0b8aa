import { isIgnored, type IgnoredEvent } from '../callers/core/message-form.ts';
import type { WebhookMessage } from '../operations/messages/post-webhook.ts';
import { reportedAlert, type ReportedAlert } from './callers/alert-report.ts';
import type { DecodedFile } from './callers/body-files.ts';
import { reportsAlert, type PostContext } from './callers/caller-input.ts';
import { readMultipartFields } from './form-fields.ts';
import { idempotencyKey, nextHopCount } from './post-headers.ts';
import { isMultipartForm, parseNonMultipartPost, postFromMultipartFields } from './post-input.ts';

/** A message with the files that the body held. They are not stored yet, and `message` does not carry them. */
export interface PostWithFiles {
  readonly message: WebhookMessage;
  readonly files: readonly DecodedFile[];
}

type FormFields = ReadonlyMap<string, string>;

/** The fields of a multipart form; null for any other body. Rejects with the error of the form. */
export async function readFormFields(body: Buffer, headers: PostContext['headers']): Promise<FormFields | null> {
  const contentType = headers['content-type'];
  return isMultipartForm(body, contentType) ? readMultipartFields(body, contentType) : null;
}

/**
 * Reads a post from its whole body; `fields` is the result of `readFormFields`. It is pure, so that it works alike on
 * the event loop and in a thread. `charge` later runs the writing of an alert's texts, and charges its time. Throws
 * KlatchError.
 */
export function readPost(
  { body, fields }: { readonly body: Buffer; readonly fields: FormFields | null },
  context: PostContext,
  charge: <Result>(work: () => Result) => Result,
): PostWithFiles | ReportedAlert | IgnoredEvent {
  const { headers, hopLimit } = context;
  const input = fields === null ? parseNonMultipartPost(body, context) : postFromMultipartFields(fields, context);
  if (isIgnored(input)) return input;
  const hops = nextHopCount(headers, hopLimit);
  const idempotencyFields = idempotencyKey(headers, body);
  if (reportsAlert(input)) return reportedAlert(input, { ...input, ...idempotencyFields, hops }, charge);
  if (input.files === undefined)
    return { message: { ...input, ...idempotencyFields, hops, attachments: [] }, files: [] };
  const { files, ...post } = input;
  return { message: { ...post, ...idempotencyFields, hops, attachments: [] }, files };
}
