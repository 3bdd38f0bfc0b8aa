import type { IncomingHttpHeaders } from 'node:http';
import { KlatchError } from '../../errors.ts';
import type { CallerFormat, CallerRequest } from '../../callers/core/caller-format.ts';
import { messageCardsJson } from '../../callers/core/message-cards.ts';
import {
  card,
  ignoredEvent,
  isIgnored,
  messageForm,
  type IgnoredEvent,
  type MessageForm,
} from '../../callers/core/message-form.ts';
import { renderText } from '../../callers/core/render-text.ts';
import type { JsonObject } from '../../callers/core/values.ts';
import { detectFormat } from '../../callers/formats.ts';
import { generic, klatchFormatCard } from '../../callers/generic.ts';
import { hasNtfyHeaders, ntfy, readNtfyText } from '../../callers/ntfy.ts';
import type { PostedExpectation } from '../../model/expectation.ts';
import { iconUrlOf, labelOf } from '../../model/shown-sender.ts';
import type { JsonLimits } from '../../operations/core/json-limits.ts';
import { checkMessageText } from '../../operations/core/message-text.ts';
import { OWN_SOURCE, ownAlertUpdate, type AlertReport } from './alert-report.ts';
import type { AlertUpdateMode } from './alert-texts.ts';
import { decodeBodyFiles, unstoredText, type DecodedFile } from './body-files.ts';
import { requireSignatureOf } from './post-signature.ts';
import { foreignFormatExpectation, ownFormatExpectation } from './posted-expectation.ts';

/** The content of a post, before its sender is known. */
export interface PostInput {
  readonly text: string;
  readonly label: string | null;
  readonly iconUrl: string | null;
  readonly cardsJson: string | null;
  readonly expectation?: PostedExpectation;
  /** Files that the body held, for the message to carry. */
  readonly files?: readonly DecodedFile[];
}

/** A post that also reports about an alert. Its `text` suffices for posting it as an ordinary message. */
interface AlertPostInput extends PostInput {
  readonly alertReport: AlertReport;
}

export const reportsAlert = (input: PostInput): input is AlertPostInput => 'alertReport' in input;

/** The request around the body of a post, and the bounds of the body. */
export interface PostContext {
  readonly headers: IncomingHttpHeaders;
  /** The address as it was sent; a format may read its query. */
  readonly url: string;
  /** The format that the address names; null: the body's shape decides. */
  readonly format: CallerFormat | null;
  readonly maxTextCodePoints: number;
  readonly attachmentsPerMessage: number;
  readonly fileBytes: number;
  readonly hopLimit: number;
  readonly jsonLimits: JsonLimits;
  /** Whether the post has files in a multipart form; text is optional then. */
  readonly hasAttachments: boolean;
  readonly alertUpdateMode: AlertUpdateMode;
  /** Called with the format that the body is read as, before the body can be refused. */
  readonly onFormat: (format: CallerFormat) => void;
  /**
   * True: the group has a secret for signatures, and the post has no signature. Formats whose senders sign are then
   * refused.
   */
  readonly isUnsigned: boolean;
}

/**
 * The result for a post about a success that followed no failure. It becomes no message: the successes would hide the
 * failures.
 */
export const NEEDLESS_SUCCESS = ignoredEvent('a success that no failure came before');

/** A JSON object with no fields but these is a post in this server's own form, which docs/webhooks.md describes. */
const OWN_KEYS: ReadonlySet<string> = new Set(['text', 'username', 'icon_url']);

const invalidInput = (sentence: string): KlatchError => new KlatchError('invalid_input', { sentence });

/**
 * Reads a JSON object, or the fields of a form. A body in this server's own form is taken unchanged, unless its shape
 * is surely that of a foreign format. Throws KlatchError with a sentence that names the field and the limit.
 */
export function postFromObject(object: JsonObject, context: PostContext): PostInput | IgnoredEvent {
  const isOwn = context.format === null && isOwnPost(object);
  const foreignFormat = context.format ?? (isOwn ? null : foreignFormatOf(object, context));
  if (foreignFormat !== null) {
    const request = callerRequest(object, context);
    const format = foreignFormat.delegateOf?.(request) ?? foreignFormat;
    if (context.isUnsigned) {
      context.onFormat(format);
      requireSignatureOf(format);
    }
    return postFromMessageForm(format.read(request), format, context);
  }
  const { text = context.hasAttachments ? '' : undefined } = object;
  if (text === undefined) throw invalidInput('text: is required; with /json behind its address any JSON can be posted');
  if (typeof text !== 'string') throw invalidInput(`text: must be a string, got ${jsonTypeName(text)}`);
  const postInput = {
    text: checkMessageText(text, context.maxTextCodePoints, context),
    label: labelOf(object['username']),
    iconUrl: iconUrlOf(object['icon_url']),
    cardsJson: isOwn ? null : messageCardsJson(messageForm({ cards: [klatchFormatCard(object)] })),
  };
  const expectation = ownFormatExpectation(isOwn ? null : object, context.url);
  const post = expectation === null ? postInput : { ...postInput, expectation };
  const update = isOwn ? null : ownAlertUpdate(object);
  return update === null ? post : withReport(post, { source: OWN_SOURCE, update, contentOf: () => postInput }, context);
}

/** Adds the report about an alert. A message with files gets none: a later edit could not add files. */
function withReport(
  input: PostInput,
  report: Pick<AlertReport, 'source' | 'update' | 'contentOf'>,
  { alertUpdateMode: mode, maxTextCodePoints, hasAttachments }: PostContext,
): PostInput | AlertPostInput {
  if (hasAttachments) return input;
  return { ...input, alertReport: { ...report, mode, maxTextCodePoints } };
}

/**
 * Whether an object has only the fields of this server's own form, as most posts do. Such posts skip the comparison
 * with foreign formats, which would be a fifth of their cost.
 */
function isOwnPost(object: JsonObject): boolean {
  for (const key in object) if (!OWN_KEYS.has(key)) return false;
  return true;
}

/**
 * The foreign format of an object; null: none. `generic` fits any object with usual names of fields, so it does not
 * apply where `text` is present: that is this server's own form.
 */
function foreignFormatOf(body: JsonObject, context: PostContext): CallerFormat | null {
  const format = detectFormat(callerRequest(body, context));
  const { text } = body;
  const hasText = text !== undefined && text !== null && text !== '';
  return format === generic && hasText ? null : format;
}

/**
 * Reads plain text as a message of ntfy, whose headers may hold the message itself. Null: the address names another
 * format, or names none and the request has none of ntfy's headers.
 */
export function postFromNtfyText(text: string, context: PostContext): PostInput | IgnoredEvent | null {
  const request = callerRequest({}, context);
  const isNtfy = context.format === null ? hasNtfyHeaders(request.headers) : context.format === ntfy;
  return isNtfy ? postFromMessageForm(readNtfyText(request, text), ntfy, context) : null;
}

function postFromMessageForm(
  form: MessageForm | IgnoredEvent,
  format: CallerFormat,
  context: PostContext,
): PostInput | IgnoredEvent {
  if (isIgnored(form)) return form;
  context.onFormat(format);
  const { alert: update, cardsForKnownAlert: cardsKnowing } = form;
  if (update?.onlyAfterFiring === true && context.hasAttachments) return NEEDLESS_SUCCESS;
  const { files, unstoredNames } = filesOf(form, context);
  const extendedForm = withUnstoredNames(form, unstoredNames);
  const text = renderText(extendedForm, context.maxTextCodePoints);
  const hasAttachments = context.hasAttachments || files.length > 0;
  if (text === '' && !hasAttachments) {
    throw invalidInput(`The body was read as ${format.name}, and nothing in it can be shown`);
  }
  const expectation = foreignFormatExpectation(context.url);
  const postInput = {
    text: checkMessageText(text, context.maxTextCodePoints, { hasAttachments }),
    label: labelOf(form.senderLabel),
    iconUrl: iconUrlOf(form.iconUrl),
    cardsJson: messageCardsJson(extendedForm),
    ...(expectation === null ? {} : { expectation }),
  };
  if (files.length > 0) return { ...postInput, files };
  if (update === null) return postInput;
  const contentOf: AlertReport['contentOf'] = (known, onlyFingerprints) => {
    if (cardsKnowing === null) return postInput;
    const alertForm = { ...form, cards: cardsKnowing(known, onlyFingerprints) };
    return { text: renderText(alertForm, context.maxTextCodePoints), cardsJson: messageCardsJson(alertForm) };
  };
  return withReport(postInput, { source: format.name, update, contentOf }, context);
}

/**
 * Decodes the files within the body. If a multipart form has files beside the body, the message only names the files
 * within the body.
 */
function filesOf({ files }: MessageForm, context: PostContext): ReturnType<typeof decodeBodyFiles> {
  if (context.hasAttachments) return { files: [], unstoredNames: files.map(({ name }) => name) };
  return decodeBodyFiles(files, context);
}

/** Adds the names of files that the message does not carry. */
function withUnstoredNames(form: MessageForm, names: readonly string[]): MessageForm {
  return names.length === 0 ? form : { ...form, cards: [...form.cards, card({ text: unstoredText(names) })] };
}

/** Formats get the headers unchanged: Node joins repeated headers, and gives only `set-cookie` as a list. */
function callerRequest(body: JsonObject, { headers, url }: PostContext): CallerRequest {
  const queryStart = url.indexOf('?');
  const query = new URLSearchParams(queryStart === -1 ? '' : url.slice(queryStart));
  return { body, headers: headers as Readonly<Record<string, string | undefined>>, query };
}

function jsonTypeName(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`.replace('a object', 'an object');
}
