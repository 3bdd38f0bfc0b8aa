import { isUtf8 } from 'node:buffer';
import { KlatchError } from '../errors.ts';
import { holdsInvisible, removeInvisible } from '../model/invisible-text.ts';
import { checkMessageText } from '../operations/core/message-text.ts';
import { WEBHOOK_POST_LIMITS } from '../operations/core/input-limits.ts';
import { parseJsonRepairingControls } from '../operations/core/parse-json.ts';
import { beginsLikeObject } from './form-fields.ts';
import { mediaType } from './json-body.ts';

/** What a post says, before it is known who posts it. */
export interface PostInput {
  readonly text: string;
  readonly label: string | null;
  readonly iconUrl: string | null;
}

const MAX_LABEL_CODE_POINTS = 80;
/** What of a longer label is looked at, in UTF-16 units for each character that is kept. */
const LABEL_SCAN_FACTOR = 10;
const MAX_ICON_URL_LENGTH = 2_048;
/** Text that begins like an object and goes on like none: a post of a template, or of code. */
const NOT_OBJECT_PATTERN = /^\s*\{\s*[^\s"}]/;
const looksLikeObject = (source: string): boolean => source.trimStart().startsWith('{');

const invalid = (sentence: string): KlatchError => new KlatchError('invalid_input', { sentence });

/** Whether a body is read with `readMultipartFields` and `postFromMultipartFields`: a multipart form, and not JSON under a wrong type. */
export function isMultipartForm(body: Buffer, contentType: string | undefined): contentType is string {
  return mediaType(contentType) === 'multipart/form-data' && !beginsLikeObject(body);
}

/**
 * Reads the body of a post, except multipart forms, as the contract says: a body that parses as a JSON object is JSON
 * whatever its type claims; a JSON type allows nothing else; then a form with `payload` or `text`; then plain text as it
 * is. Throws KlatchError with a sentence that names the field and the limit.
 */
export function parseNonMultipartPost(
  body: Buffer,
  contentType: string | undefined,
  limits: { textCodePoints: number },
): PostInput {
  const input = postFromBody(body, contentType, mediaType(contentType));
  return { ...input, text: checkMessageText(input.text, limits.textCodePoints) };
}

function postFromBody(body: Buffer, contentType: string | undefined, type: string): PostInput {
  const isJson = type === 'application/json' || type.endsWith('+json');
  const source = decodeBody(body, isJson ? undefined : contentType);
  if (isJson || (looksLikeObject(source) && !NOT_OBJECT_PATTERN.test(source))) {
    const parsed = parseJsonRepairingControls(source, WEBHOOK_POST_LIMITS, 'The body');
    if (isObject(parsed.value)) return postFromObject(parsed.value);
    if (isJson) throw invalid(parsed.problem ?? 'The body must be a JSON object with text, such as {"text": "hello"}');
  }
  if (type === 'application/x-www-form-urlencoded') {
    const form = postFromForm(formFieldReader(source));
    if (form !== null) return form;
  }
  return { text: source, label: null, iconUrl: null };
}

/** The first letters of the fields that a form is read for; no two are equal. */
const FIELD_BY_FIRST_CHAR_CODE: ReadonlyMap<number, string> = new Map(
  ['payload', 'text', 'username', 'icon_url'].map((name) => [name.charCodeAt(0), name]),
);
const AMPERSAND = 0x26;

/**
 * Where the values of the known fields begin, of fields of one name the first; a name without its sign is a word of a plain
 * text. One pass: URLSearchParams took seconds for 1 MiB of fields without a value, and a search for each name 30 ms.
 */
function findFieldValueStarts(source: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (let at = 0; at < source.length; at += 1) {
    const name = FIELD_BY_FIRST_CHAR_CODE.get(source.charCodeAt(at));
    if (name !== undefined && !found.has(name) && source.startsWith(`${name}=`, at)) {
      found.set(name, at + name.length + 1);
    }
    while (at < source.length && source.charCodeAt(at) !== AMPERSAND) at += 1;
  }
  return found;
}

/** Decodes the one field that is asked for: URLSearchParams took 115 ms for 1 MiB of `+`. */
function formFieldReader(source: string): (name: string) => string | null {
  const found = findFieldValueStarts(source);
  return (name) => {
    const start = found.get(name);
    if (start === undefined) return null;
    const end = source.indexOf('&', start);
    return decodeFormValue(source.slice(start, end === -1 ? undefined : end));
  };
}

const PLUS = 0x2b;
const SPACE = 0x20;
const PERCENT = 0x25;

/** Decodes a value as the URL standard does: a percent sign without two digits is one, broken UTF-8 becomes U+FFFD. */
function decodeFormValue(encoded: string): string {
  const bytes = Buffer.from(encoded);
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    let byte = bytes[at]!;
    if (byte === PLUS) byte = SPACE;
    else if (byte === PERCENT) {
      const high = hexDigit(bytes[at + 1]);
      const low = hexDigit(bytes[at + 2]);
      if (high !== -1 && low !== -1) {
        byte = high * 16 + low;
        at += 2;
      }
    }
    bytes[length] = byte;
    length += 1;
  }
  return bytes.toString('utf8', 0, length);
}

/** Minus one for what is none. */
function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** A byte order mark is dropped; what is not valid in its charset is refused instead of being stored garbled. */
function decodeBody(body: Buffer, contentType: string | undefined): string {
  // What nearly every body is, without a decoder of its own. A mark, or a fault, is for the decoder below.
  const named = contentType?.includes('=') === true;
  if (!named && body[0] !== 0xef && isUtf8(body)) return body.toString('utf8');
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
    throw new KlatchError('invalid_input', { sentence: `The body is not valid ${decoder.encoding}`, cause });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a form says that was read field by field. `hasAttachments`: by files, which are enough. Throws as `parseNonMultipartPost` does. */
export function postFromMultipartFields(
  fields: ReadonlyMap<string, string>,
  hasAttachments: boolean,
  limits: { textCodePoints: number },
): PostInput {
  const missing = (name: string): string | null => (hasAttachments && name === 'text' ? '' : null);
  const input = postFromForm((name) => fields.get(name) ?? missing(name), { hasAttachments });
  if (input === null) throw missingFormTextError();
  return { ...input, text: checkMessageText(input.text, limits.textCodePoints, { hasAttachments }) };
}

/** Null when the form has neither of the two fields that make it one. `hasAttachments`: by files, which need no text. */
function postFromForm(
  field: (name: string) => string | null,
  { hasAttachments = false }: { hasAttachments?: boolean } = {},
): PostInput | null {
  const payload = field('payload');
  if (payload !== null) {
    // What is not even a bracket needs no parser, which takes 5 ms for 1 MiB of white space.
    const value = looksLikeObject(payload)
      ? parseJsonRepairingControls(payload, WEBHOOK_POST_LIMITS, 'payload:').value
      : undefined;
    if (!isObject(value)) throw invalid('payload: must be a JSON object with text');
    return postFromObject(hasAttachments ? { text: '', ...value } : value);
  }
  if (field('text') === null) return null;
  return postFromObject({
    text: field('text'),
    username: field('username') ?? undefined,
    icon_url: field('icon_url') ?? undefined,
  });
}

function missingFormTextError(): KlatchError {
  return invalid('text: is required (a form needs the field text, or payload with JSON)');
}

function postFromObject(object: Record<string, unknown>): PostInput {
  const { text } = object;
  if (text === undefined) throw invalid('text: is required');
  if (typeof text !== 'string') throw invalid(`text: must be a string, got ${jsonTypeName(text)}`);
  return {
    text,
    label: labelOf(object['username']),
    iconUrl: iconUrlOf(object['icon_url']),
  };
}

function jsonTypeName(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`.replace('a object', 'an object');
}

/** A label is no reason to refuse a message: what cannot be a name is left out, and the rest is cleaned and cut. */
function labelOf(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const label = removeInvisible(value.slice(0, MAX_LABEL_CODE_POINTS * LABEL_SCAN_FACTOR)).trim();
  return label === '' ? null : Array.from(label).slice(0, MAX_LABEL_CODE_POINTS).join('');
}

/** Clients may open it or fetch it: anything but an address of the web is left out. */
function iconUrlOf(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_ICON_URL_LENGTH || !/^https?:\/\/[^\s\\]+$/i.test(value))
    return null;
  return !holdsInvisible(value) && URL.canParse(value) ? value : null;
}
