import { KlatchError } from '../errors.ts';

/** The text of a body. Throws `invalid_input` for what is not UTF-8. */
export function decodeUtf8(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch (cause) {
    throw new KlatchError('invalid_input', { sentence: 'The body is not valid utf-8', cause });
  }
}

/** The type of a Content-Type header without its parameters, lower case; empty when there is none. */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase();
}
