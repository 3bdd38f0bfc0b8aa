import { isUtf8 } from 'node:buffer';
import { KlatchError } from '../errors.ts';
import { isObject, type JsonObject } from '../callers/core/values.ts';
import type { IgnoredEvent } from '../callers/core/message-form.ts';
import { checkMessageText } from '../operations/core/message-text.ts';
import type { JsonLimits } from '../operations/core/json-limits.ts';
import { parseJsonRepairingControls } from '../operations/core/parse-json.ts';
import { postFromNtfyText, postFromObject, type PostContext, type PostInput } from './callers/caller-input.ts';
import { ownFormatExpectation } from './callers/posted-expectation.ts';
import { beginsLikeObject } from './form-fields.ts';
import { mediaType } from './json-body.ts';
import { urlEncodedForm } from './url-encoded-form.ts';

/** Text that begins like a JSON object but cannot be one: a template, or code. */
const NOT_OBJECT_PATTERN = /^\s*\{\s*[^\s"}]/;
const looksLikeObject = (text: string): boolean => text.trimStart().startsWith('{');

/**
 * Fields of forms that hold the whole post as JSON: `payload` of Slack and GitHub, `payload_json` of Discord, `data` of
 * Uptime Kuma.
 */
const JSON_FIELDS = ['payload', 'payload_json', 'data'] as const;
/**
 * A form without the field `text` is a post if it has one of these fields. A url-encoded form with a field that is not
 * in KNOWN_FIELDS is then plain text instead.
 */
const TEXT_FIELDS = ['message', 'body', 'msg', 'content'] as const;
/** The fields that programs' forms have. A body with another field may be a text that happens to hold `=`. */
const KNOWN_FIELDS: ReadonlySet<string> = new Set(
  (
    'message body msg text title subject type level priority severity status url link click username icon_url version ' +
    'format tag tags topic chat_id parse_mode caption content avatar_url tts key expect'
  ).split(' '),
);

const invalid = (sentence: string): KlatchError => new KlatchError('invalid_input', { sentence });

/**
 * Whether a body is a multipart form, and not JSON under a wrong type. `readMultipartFields` and
 * `postFromMultipartFields` then read the body.
 */
export function isMultipartForm(body: Buffer, contentType: string | undefined): contentType is string {
  return mediaType(contentType) === 'multipart/form-data' && !beginsLikeObject(body);
}

/**
 * Reads the body of a post that is no multipart form. It is the first of these that fits:
 * - a JSON object, whatever its Content-Type claims; a JSON type allows nothing else
 * - a url-encoded form with the fields of a post
 * - plain text
 *
 * Throws KlatchError with a sentence that names the field and the limit.
 */
export function parseNonMultipartPost(body: Buffer, context: PostContext): PostInput | IgnoredEvent {
  const contentType = context.headers['content-type'];
  const type = mediaType(contentType);
  const isJson = type === 'application/json' || type.endsWith('+json');
  const bodyText = decodeBody(body, isJson ? undefined : contentType);
  if (isJson || (looksLikeObject(bodyText) && !NOT_OBJECT_PATTERN.test(bodyText))) {
    const parsed = parseJsonRepairingControls(bodyText, context.jsonLimits, 'The body');
    if (isObject(parsed.value)) return postFromObject(parsed.value, context);
    if (isJson) throw invalid(parsed.problem ?? 'The body must be a JSON object with text, such as {"text": "hello"}');
  }
  if (type === 'application/x-www-form-urlencoded') {
    const form = urlEncodedForm(bodyText);
    const isSurelyForm = [...form.names].every((name) => KNOWN_FIELDS.has(name));
    const post = postFromFormFields({ ...form, isSurelyForm }, context);
    if (post !== null) return post;
  }
  const ntfyPost = postFromNtfyText(bodyText, context);
  if (ntfyPost !== null) return ntfyPost;
  const text = checkMessageText(bodyText, context.maxTextCodePoints);
  const input = { text, label: null, iconUrl: null, cardsJson: null };
  const expectation = ownFormatExpectation(null, context.url);
  return expectation === null ? input : { ...input, expectation };
}

interface Form {
  readonly names: ReadonlySet<string>;
  readonly field: (name: string) => string | null;
  /** False: a url-encoded body has unknown fields, so it may also be a plain text that contains `=`. */
  readonly isSurelyForm: boolean;
}

/** The post in the fields of a multipart form. Throws as `parseNonMultipartPost` does. */
export function postFromMultipartFields(
  fields: ReadonlyMap<string, string>,
  context: PostContext,
): PostInput | IgnoredEvent {
  const field = (name: string): string | null => fields.get(name) ?? null;
  const post = postFromFormFields({ names: new Set(fields.keys()), field, isSurelyForm: true }, context);
  if (post !== null) return post;
  if (context.hasAttachments) return postFromObject({}, context);
  throw invalid('text: is required (a form needs the field text, or payload with JSON)');
}

/** The post in a form; null: the form has none of the fields that make it a post. */
function postFromFormFields(form: Form, context: PostContext): PostInput | IgnoredEvent | null {
  for (const name of JSON_FIELDS) {
    const value = jsonField(name, form.field(name), context.jsonLimits);
    if (value !== null) return postFromObject(value, context);
  }
  const isPost =
    form.names.has('text') ||
    (form.isSurelyForm && (context.format !== null || TEXT_FIELDS.some((name) => form.names.has(name))));
  if (!isPost) return null;
  const known = [...form.names].filter((name) => KNOWN_FIELDS.has(name));
  return postFromObject(Object.fromEntries(known.map((name) => [name, form.field(name)])), context);
}

/**
 * The JSON object in a field of a form; null: the field is absent or holds no JSON object. Throws if `payload` holds
 * none, since its name promises JSON; another field may be part of somebody's own form.
 */
function jsonField(
  name: (typeof JSON_FIELDS)[number],
  fieldText: string | null,
  limits: JsonLimits,
): JsonObject | null {
  if (fieldText === null) return null;
  // Text without an opening brace at its start is not parsed: the parser takes 5 ms for 1 MiB of white space.
  const value = looksLikeObject(fieldText)
    ? parseJsonRepairingControls(fieldText, limits, `${name}:`).value
    : undefined;
  if (isObject(value)) return value;
  if (name === 'payload') throw invalid('payload: must be a JSON object with text');
  return null;
}

/**
 * Decodes a body by its charset, without a byte order mark. Invalid bytes are refused instead of being stored garbled.
 */
function decodeBody(body: Buffer, contentType: string | undefined): string {
  // The fast path of nearly all bodies. The decoder below handles a byte order mark and invalid bytes.
  const hasParameters = contentType?.includes('=') === true;
  if (!hasParameters && body[0] !== 0xef && isUtf8(body)) return body.toString('utf8');
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(contentType ?? '')?.[1] ?? 'utf-8';
  let decoder: InstanceType<typeof TextDecoder>;
  try {
    decoder = new TextDecoder(charset, { fatal: true });
  } catch (cause) {
    throw new KlatchError('unsupported_media', {
      sentence: 'The charset of the Content-Type is not known; use utf-8',
      cause,
    });
  }
  try {
    return decoder.decode(body);
  } catch (cause) {
    const sentence = `The body is not valid ${decoder.encoding}: encode it so`;
    throw new KlatchError('invalid_input', { sentence, cause });
  }
}
