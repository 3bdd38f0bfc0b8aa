import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { hookSecretKey } from './hook-secret.ts';

export const INCOMING_SECRET_SEAL_PURPOSE = 'incoming-secret';

/** A group's secret for the signatures of posts, ready to verify with. */
export interface IncomingSecret {
  /** The bytes of the secret's text: the key of GitHub, Gitea, Grafana and Sentry. */
  readonly secretTextKey: KeyObject;
  /** The key of Standard Webhooks: the decoded base64 of a text `whsec_…`, the bytes of any other text. */
  readonly standardWebhooksKey: KeyObject;
  /** SHA-256 of the secret's text. GitLab sends the text itself. */
  readonly secretTextDigest: Buffer;
  /** True: the group refuses every unsigned post, also in formats whose senders sign nothing. */
  readonly signedOnly: boolean;
}

const MIN_INCOMING_SECRET_LENGTH = 16;
export const MAX_INCOMING_SECRET_LENGTH = 256;
export const INCOMING_SECRET_LENGTH_PROBLEM = `must have ${MIN_INCOMING_SECRET_LENGTH} to ${MAX_INCOMING_SECRET_LENGTH} visible ASCII characters`;
const VISIBLE_ASCII_PATTERN = /^[\x21-\x7e]*$/;
const STANDARD_PREFIX = 'whsec_';
/** A secret of Standard Webhooks: `whsec_` and the base64 of 12 bytes or more. */
const STANDARD_PATTERN = /^whsec_[A-Za-z0-9+/]{16,}={0,2}$/;

/** The problem with a secret that somebody chose, as a sentence; null: none. */
export function incomingSecretProblem(text: string): string | null {
  if (
    text.length < MIN_INCOMING_SECRET_LENGTH ||
    text.length > MAX_INCOMING_SECRET_LENGTH ||
    !VISIBLE_ASCII_PATTERN.test(text)
  )
    return INCOMING_SECRET_LENGTH_PROBLEM;
  if (text.startsWith(STANDARD_PREFIX) && !STANDARD_PATTERN.test(text))
    return `must have base64 of 12 bytes or more behind ${STANDARD_PREFIX}`;
  return null;
}

/** The secret of a text for which `incomingSecretProblem` returns null. */
export function incomingSecretOf(text: string, signedOnly: boolean): IncomingSecret {
  const secretTextKey = createSecretKey(text, 'utf8');
  const standardWebhooksKey = text.startsWith(STANDARD_PREFIX) ? hookSecretKey(text) : secretTextKey;
  return {
    secretTextKey,
    standardWebhooksKey,
    secretTextDigest: createHash('sha256').update(text).digest(),
    signedOnly,
  };
}
