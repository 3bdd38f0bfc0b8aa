import type { JsonObject } from '../../callers/core/values.ts';
import { KlatchError } from '../../errors.ts';
import {
  EXPECTATION_KEY_SENTENCE,
  parseExpectationKey,
  parseWithin,
  WITHIN_SENTENCE,
  type PostedExpectation,
} from '../../model/expectation.ts';

/** The values of `key` and `expect`, in a body of this server's own form or in the query of an address. */
interface ExpectationFields {
  readonly key: unknown;
  readonly expect: unknown;
}

/**
 * The expectation of plain text, or of a post in this server's own form. Each of `key` and `expect` comes from the
 * body, or else from the address. Null if `key` is no text, or if it is invalid and `expect` is absent. Throws
 * KlatchError with a sentence that names the field.
 */
export function ownFormatExpectation(object: JsonObject | null, url: string): PostedExpectation | null {
  const addressFields = fieldsOfAddress(url);
  const key = object?.['key'] ?? addressFields?.key;
  const expect = object?.['expect'] ?? addressFields?.expect;
  // A key that is no text is not refused: an existing caller may send a field `key` for its own purpose.
  if (typeof key !== 'string') return null;
  return parseFields({ key, expect });
}

/**
 * The expectation that the address of a post in another format names. Invalid parts are left out and refuse no message.
 */
export function foreignFormatExpectation(url: string): PostedExpectation | null {
  const addressFields = fieldsOfAddress(url);
  if (addressFields === null) return null;
  try {
    const expectation = parseFields(addressFields);
    return expectation === null ? null : { ...expectation, mustRefusePostAtLimit: false };
  } catch {
    return parseFields({ ...addressFields, expect: undefined });
  }
}

/** The fields in the query of an address; null if the query has no `key`. */
function fieldsOfAddress(url: string): ExpectationFields | null {
  const queryStart = url.indexOf('?');
  if (queryStart === -1) return null;
  const query = new URLSearchParams(url.slice(queryStart));
  const key = query.get('key');
  return key === null ? null : { key, expect: query.get('expect') };
}

function parseFields({ key: given, expect }: ExpectationFields): PostedExpectation | null {
  const key = parseExpectationKey(String(given));
  if (expect === undefined || expect === null)
    return key === null ? null : { key, within: null, mustRefusePostAtLimit: false };
  if (key === null) throw new KlatchError('invalid_input', { sentence: `key: ${EXPECTATION_KEY_SENTENCE}` });
  const within = expect === 'off' ? expect : typeof expect === 'string' ? parseWithin(expect) : null;
  if (within === null) throw new KlatchError('invalid_input', { sentence: `expect: ${WITHIN_SENTENCE}, or off` });
  return { key, within, mustRefusePostAtLimit: true };
}
