import { KlatchError } from '../../errors.ts';
import type { AddressPolicy } from '../../outbound/address-policy.ts';

const MAX_URL_CHARACTERS = 2_048;
/** Bound before normalisation, which can take very long for 1 MiB that an attacker chose. */
const MAX_RAW_URL_CHARACTERS = 16_384;

/**
 * The normalised form (WHATWG `href`) of a reverse webhook's URL. Throws `invalid_hook_url` unless it is an absolute
 * http(s) URL within its bound, without credentials, fragment and port 0. Throws `hook_address_forbidden` if it names a
 * refused address literally; a host name is checked at each attempt, by the addresses that it resolves to.
 */
export function parseHookUrl(text: string, policy: AddressPolicy): string {
  const url = text.length > MAX_RAW_URL_CHARACTERS ? null : URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) throw new KlatchError('invalid_hook_url');
  // The parser drops an empty fragment's text but keeps its sign in href.
  if (url.username !== '' || url.password !== '' || url.href.includes('#')) throw new KlatchError('invalid_hook_url');
  // Nothing can be reached at port 0, and the code that connects may take it for "no port given".
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
