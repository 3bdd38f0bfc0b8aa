import { KlatchError } from '../../errors.ts';
import type { AddressPolicy } from '../../outbound/address-policy.ts';

/** The most characters of a URL in normalised form. */
export const MAX_URL_CHARACTERS = 2_048;
/** Bounds the URL before it is normalised, which could take very long for a malicious URL of 1 MiB. */
const MAX_RAW_URL_CHARACTERS = 16_384;

/**
 * The URL of a reverse webhook in normalised form (WHATWG `href`). Throws `invalid_hook_url` unless it is an absolute
 * http(s) URL within its bound, without credentials, without a fragment, and with a port other than 0. Throws
 * `hook_address_forbidden` if its host is an IP address that the address policy refuses. A host name is resolved and
 * checked at each attempt.
 */
export function parseHookUrl(text: string, policy: AddressPolicy): string {
  const url = text.length > MAX_RAW_URL_CHARACTERS ? null : URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) throw new KlatchError('invalid_hook_url');
  // `hash` is empty for an empty fragment, but `href` still ends with #.
  if (url.username !== '' || url.password !== '' || url.href.includes('#')) throw new KlatchError('invalid_hook_url');
  // Nothing listens on port 0, and the code that connects could take 0 for "no port".
  if (url.port === '0' || url.href.length > MAX_URL_CHARACTERS) throw new KlatchError('invalid_hook_url');
  const rule = policy.violatedRuleBeforeLookup(url.hostname);
  if (rule !== null) {
    const sentence =
      `The address policy refuses ${url.hostname} (${rule}): ` +
      'the administrator can allow it with delivery.allow in server.conf';
    throw new KlatchError('hook_address_forbidden', { sentence });
  }
  return url.href;
}
