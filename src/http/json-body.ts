import type { IncomingMessage } from 'node:http';
import { KlatchError } from '../errors.ts';
import type { BodyLimits } from '../operations/core/input-limits.ts';
import { parseJsonRepairingControls } from '../operations/core/parse-json.ts';

const JSON_MEDIA_TYPE = 'application/json';

/** The text of a body. Throws `invalid_input` for what is not UTF-8. */
export function decodeUtf8(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch (cause) {
    throw new KlatchError('invalid_input', { sentence: 'The body is not valid utf-8: encode it so', cause });
  }
}

/** The type of a Content-Type header without its parameters, lower case; empty when there is none. */
export function mediaType(contentType: string | undefined): string {
  if (contentType === undefined) return '';
  const end = contentType.indexOf(';');
  return (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
}

/** The input in a JSON body; an empty body is an empty object. Throws `unsupported_media` and `invalid_input`. */
export function parseJsonBodyAsInput(req: IncomingMessage, body: Buffer, limits: BodyLimits): object {
  if (body.length === 0) return {};
  const type = mediaType(req.headers['content-type']);
  if (type !== '' && type !== JSON_MEDIA_TYPE && !type.endsWith('+json')) {
    const sentence = `The body is the input as JSON: send it with Content-Type: ${JSON_MEDIA_TYPE}; charset=utf-8`;
    throw new KlatchError('unsupported_media', { sentence });
  }
  const { value, problem } = parseJsonRepairingControls(decodeUtf8(body), limits);
  if (problem !== undefined) throw new KlatchError('invalid_input', { sentence: problem });
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new KlatchError('invalid_input', { sentence: 'The body must be a JSON object: the input of the operation' });
  }
  return value;
}
