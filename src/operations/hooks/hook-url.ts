import { KlatchError } from '../../errors.ts';
import type { AddressPolicy } from '../../outbound/address-policy.ts';

const MAX_URL_CHARACTERS = 2_048;
/** The bound before normalisation: for 1 MiB, an attacker could make it take very long. */
const MAX_RAW_URL_CHARACTERS = 16_384;

/**
 * The normalised form (WHATWG `href`) of a reverse webhook's URL. Throws `invalid_hook_url` when it is not an absolute
 * http(s) URL within its bound, without credentials, fragment and port 0. Throws `hook_address_forbidden` when it names
 * a refused address literally; a host name is judged at each attempt, by its addresses.
 */
export function parseHookUrl(text: string, policy: AddressPolicy): string {
  const url = text.length > MAX_RAW_URL_CHARACTERS ? null : URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) throw new KlatchError('invalid_hook_url');
  // The parser drops an empty fragment's text but keeps its sign in href.
  if (url.username !== '' || url.password !== '' || url.href.includes('#')) throw new KlatchError('invalid_hook_url');
  // No server listens on port 0, and the connecting code may read it as "no port given".
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
