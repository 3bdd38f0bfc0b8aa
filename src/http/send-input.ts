import { KlatchError } from '../errors.ts';

/** What a post says, before it is known who posts it. */
export interface SendInput {
  readonly text: string;
  readonly label: string | null;
  readonly iconUrl: string | null;
}

const MAX_LABEL = 80;
const MAX_ICON_URL = 2_048;
const CONTROL = /\p{Cc}/u;

/** The type of a Content-Type header without its parameters, lower case; empty when there is none. */
function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase();
}

const invalid = (sentence: string): KlatchError => new KlatchError('invalid_input', { sentence });

/**
 * Reads the body of a post as the contract says: a body that parses as a JSON object is JSON whatever its type claims; a
 * JSON type allows nothing else; then a form with `payload` or `text`; then plain text as it is. Throws KlatchError with
 * a sentence that names the field and the limit.
 */
export async function parseSend(
  body: Buffer,
  contentType: string | undefined,
  limits: { textCodePoints: number },
): Promise<SendInput> {
  const type = mediaType(contentType);
  const input =
    type === 'multipart/form-data' ? await readMultipart(body, contentType!) : readText(body, contentType, type);
  return { ...input, text: checkText(input.text, limits.textCodePoints) };
}

function readText(body: Buffer, contentType: string | undefined, type: string): SendInput {
  const isJson = type === 'application/json' || type.endsWith('+json');
  const source = decode(body, isJson ? undefined : contentType);
  const start = source.trimStart()[0];
  if (isJson || start === '{') {
    const parsed = parseJson(source);
    if (isObject(parsed.value)) return fromObject(parsed.value);
    if (isJson) throw invalid(parsed.problem ?? 'The body must be a JSON object with text, such as {"text": "hello"}');
  }
  if (type === 'application/x-www-form-urlencoded') {
    const fields = new URLSearchParams(source);
    const form = fromForm((name) => fields.get(name));
    if (form !== null) return form;
  }
  return { text: source, label: null, iconUrl: null };
}

/** A byte order mark is dropped; what is not valid in its charset is refused instead of being stored garbled. */
function decode(body: Buffer, contentType: string | undefined): string {
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

function parseJson(source: string): { value?: unknown; problem?: string } {
  try {
    return { value: JSON.parse(source) };
  } catch (error) {
    const repaired = repairControls(source);
    if (repaired !== source) {
      try {
        return { value: JSON.parse(repaired) };
      } catch {
        // Told below with the place in what was really sent.
      }
    }
    return { problem: `The body is not valid JSON${jsonPlace(source, error)}` };
  }
}

/** Where JSON.parse stopped, without quoting what stands there. */
function jsonPlace(source: string, error: unknown): string {
  const position = /at position (\d+)/.exec(String(error))?.[1];
  if (position === undefined) return ': it ends too early';
  const before = source.slice(0, Number(position));
  const line = before.split('\n').length;
  return ` at line ${line}, column ${before.length - before.lastIndexOf('\n')}`;
}

/** Escapes raw control characters inside strings: shell scripts put line breaks into JSON. */
function repairControls(source: string): string {
  return source.replace(/"(?:[^"\\]|\\[\s\S])*"/g, (literal) =>
    // oxlint-disable-next-line no-control-regex -- these are what it looks for
    literal.replace(/[\u0000-\u001f]/g, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Null when the form has neither of the two fields that make it one. */
function fromForm(field: (name: string) => string | null): SendInput | null {
  const payload = field('payload');
  if (payload !== null) {
    const parsed = parseJson(payload);
    if (!isObject(parsed.value)) throw invalid('payload: must be a JSON object with text');
    return fromObject(parsed.value);
  }
  if (field('text') === null) return null;
  return fromObject({
    text: field('text'),
    username: field('username') ?? undefined,
    icon_url: field('icon_url') ?? undefined,
  });
}

async function readMultipart(body: Buffer, contentType: string): Promise<SendInput> {
  let fields: FormData;
  try {
    fields = await new Response(new Uint8Array(body), { headers: { 'content-type': contentType } }).formData();
  } catch (cause) {
    throw new KlatchError('invalid_input', { sentence: 'The body is not a valid multipart form', cause });
  }
  for (const [, value] of fields) {
    if (typeof value !== 'string') throw invalid('This server takes no files yet: send the text alone');
  }
  const form = fromForm((name) => fields.get(name) as string | null);
  if (form === null) throw invalid('text: is required (a form needs the field text, or payload with JSON)');
  return form;
}

function fromObject(object: Record<string, unknown>): SendInput {
  const { text } = object;
  if (text === undefined) throw invalid('text: is required');
  if (typeof text !== 'string') throw invalid(`text: must be a string, got ${nameOf(text)}`);
  return {
    text,
    label: optionalString(object['username'], { field: 'username', max: MAX_LABEL }),
    iconUrl: optionalString(object['icon_url'], { field: 'icon_url', max: MAX_ICON_URL }),
  };
}

function nameOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`.replace('a object', 'an object');
}

function optionalString(value: unknown, bound: { field: string; max: number }): string | null {
  if (value === undefined || value === null || value === '') return null;
  const { field, max } = bound;
  if (typeof value !== 'string') throw invalid(`${field}: must be a string, got ${nameOf(value)}`);
  if ([...value].length > max) throw invalid(`${field}: has more than ${max} characters`);
  if (CONTROL.test(value) || !value.isWellFormed()) throw invalid(`${field}: must not hold control characters`);
  return value;
}

function checkText(text: string, maxCodePoints: number): string {
  if (text.trim() === '') throw invalid('text: must hold something other than white space');
  if (!text.isWellFormed()) throw invalid('text: is not valid Unicode (it holds half of a surrogate pair)');
  if (text.includes('\u0000')) throw invalid('text: must not hold the character NUL');
  // Code points are at most as many as code units, so most texts need no counting.
  if (text.length > maxCodePoints) {
    let count = 0;
    for (const _ of text) count += 1;
    if (count > maxCodePoints) {
      const sentence = `text: has ${count} characters (code points), at most ${maxCodePoints} are allowed`;
      throw new KlatchError('too_large', { sentence });
    }
  }
  return text;
}
