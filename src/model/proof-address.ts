import { domainToASCII } from 'node:url';

/** Kinds of addresses that people prove to be theirs. */
export const addressKinds = ['email', 'phone'] as const;
export type AddressKind = (typeof addressKinds)[number];

/** Providers that send codes to such addresses: the activation gate, which reaches telephones, and a mail server. */
export const activationProviderNames = ['gate', 'email'] as const;
export type ActivationProviderName = (typeof activationProviderNames)[number];

/** An address in the one spelling that it is stored and looked up in. */
export interface ProofAddress {
  readonly kind: AddressKind;
  /** E-mail in lower case, its domain in ASCII; telephone numbers as E.164 writes them, `+` and digits. */
  readonly address: string;
}

const MAX_EMAIL_LENGTH = 254;
const MAX_LOCAL_PART_LENGTH = 64;
/** RFC 5321's dot-string. Quoted local parts, comments and lists are not accepted. */
const EMAIL_LOCAL_PART = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const DOMAIN_PATTERN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Characters that people write between the digits of a number. */
const PHONE_SEPARATORS = /[\s().\-/\u2010-\u2015]/g;
const E164_PATTERN = /^\+[1-9][0-9]{6,14}$/;

/** Reads an address as people write it. If the text is no address, returns a sentence that says what is wrong. */
export function parseProofAddress(text: string): ProofAddress | string {
  const trimmed = text.trim();
  return trimmed.includes('@') ? parseEmail(trimmed) : parsePhone(trimmed);
}

function parseEmail(text: string): ProofAddress | string {
  const at = text.lastIndexOf('@');
  const local = text.slice(0, at).toLowerCase();
  const domain = domainToASCII(text.slice(at + 1));
  const address = `${local}@${domain}`;
  const isValidEmail =
    EMAIL_LOCAL_PART.test(local) &&
    DOMAIN_PATTERN.test(domain) &&
    local.length <= MAX_LOCAL_PART_LENGTH &&
    address.length <= MAX_EMAIL_LENGTH;
  return isValidEmail ? { kind: 'email', address } : 'this is not an e-mail address such as alice@example.org';
}

function parsePhone(text: string): ProofAddress | string {
  const address = text.replace(PHONE_SEPARATORS, '');
  if (E164_PATTERN.test(address)) return { kind: 'phone', address };
  return (
    'give an e-mail address such as alice@example.org, or a telephone number with + and the code of its country, ' +
    'such as +49 170 1234567'
  );
}
