import type { JsonObject } from '../../callers/core/values.ts';
import { KlatchError } from '../../errors.ts';
import {
  EXPECTATION_KEY_SENTENCE,
  parseExpectationKey,
  parseWithin,
  WITHIN_SENTENCE,
  type PostedExpectation,
} from '../../model/expectation.ts';

/** What `key` and `expect` are, in a body of ours or behind an address. */
interface ExpectationFields {
  readonly key: unknown;
  readonly expect: unknown;
}

/**
 * What a post of ours, or plain text, says about an expectation: the fields of its body, and those of its address for what
 * the body does not say. Null without a key. Throws KlatchError with a sentence that names the field.
 */
export function ownExpectation(object: JsonObject | null, url: string): PostedExpectation | null {
  const address = fieldsOfAddress(url);
  const key = object?.['key'] ?? address?.key;
  const expect = object?.['expect'] ?? address?.expect;
  // An existing caller may send a field of this name.
  if (typeof key !== 'string') return null;
  return parseFields({ key, expect });
}

/** What the address of a post in another format says; what is wrong with it is left out, and refuses no message. */
export function foreignExpectation(url: string): PostedExpectation | null {
  const address = fieldsOfAddress(url);
  if (address === null) return null;
  try {
    const expectation = parseFields(address);
    return expectation === null ? null : { ...expectation, isRefusedOverLimit: false };
  } catch {
    return parseFields({ ...address, expect: undefined });
  }
}

/** Null where there is no key. */
function fieldsOfAddress(url: string): ExpectationFields | null {
  const start = url.indexOf('?');
  if (start === -1) return null;
  const query = new URLSearchParams(url.slice(start));
  const key = query.get('key');
  return key === null ? null : { key, expect: query.get('expect') };
}

function parseFields({ key: given, expect }: ExpectationFields): PostedExpectation | null {
  const key = parseExpectationKey(String(given));
  if (expect === undefined || expect === null)
    return key === null ? null : { key, within: null, isRefusedOverLimit: false };
  if (key === null) throw new KlatchError('invalid_input', { sentence: `key: ${EXPECTATION_KEY_SENTENCE}` });
  const within = expect === 'off' ? expect : typeof expect === 'string' ? parseWithin(expect) : null;
  if (within === null) throw new KlatchError('invalid_input', { sentence: `expect: ${WITHIN_SENTENCE}, or off` });
  return { key, within, isRefusedOverLimit: true };
}
