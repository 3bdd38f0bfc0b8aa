import { createHash, createHmac, timingSafeEqual, type Hmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { CallerFormat } from '../../callers/core/caller-format.ts';
import { KlatchError } from '../../errors.ts';
import type { IncomingSecret } from '../../model/incoming-secret.ts';

/** Headers with the HMAC-SHA256 of the body in hexadecimal digits, after a prefix. */
const BODY_HMAC_HEADERS = [
  { header: 'X-Hub-Signature-256', prefix: 'sha256=' },
  { header: 'X-Gitea-Signature', prefix: '' },
  { header: 'X-Forgejo-Signature', prefix: '' },
  { header: 'X-Gogs-Signature', prefix: '' },
  { header: 'Sentry-Hook-Signature', prefix: '' },
] as const;
const GRAFANA_HEADER = 'X-Grafana-Alerting-Signature';
/**
 * Grafana's administrators have to choose this name for the header with the time. If it is present, the time is signed.
 */
const GRAFANA_TIMESTAMP_HEADER = 'X-Grafana-Alerting-Timestamp';
const GITLAB_HEADER = 'X-Gitlab-Token';
const STANDARD_HEADER = 'webhook-signature';
/** The most seconds between the signed time and this server's clock, as Standard Webhooks recommends. */
const MAX_CLOCK_DIFFERENCE_S = 300;
const UNIX_TIME_PATTERN = /^\d{1,12}$/;
const HEX_DIGEST_PATTERN = /^[0-9a-f]{64}$/i;

/** A header's claim about the body. `isSignatureValid` may be called only after the HMACs got the whole body. */
interface SignatureClaim {
  readonly headerName: string;
  readonly isSignatureValid: () => boolean;
}

/**
 * The signatures of one post, verified over its body as it was sent. Each signature that is present has to be valid. An
 * empty signature, which git hosts send if they have no secret, counts as absent.
 */
export class PostSignature {
  readonly #claims: readonly SignatureClaim[];
  readonly #hmacs: Hmac[] = [];
  #isVerified = false;

  /** Throws `invalid_signature` if a signed time is more than 5 minutes from `nowMs`, or is no time. */
  constructor(headers: IncomingHttpHeaders, secret: IncomingSecret, nowMs = Date.now()) {
    this.#claims = this.#claimsOf(headers, secret, nowMs);
  }

  /** Whether the post has a signature, valid or not. */
  get hasSignature(): boolean {
    return this.#claims.length > 0;
  }

  /** Takes the next bytes of the body. */
  update(chunk: Buffer): void {
    for (const hmac of this.#hmacs) hmac.update(chunk);
  }

  /** To be called once, after the last bytes of the body. Throws `invalid_signature` if a signature is not valid. */
  verify(): void {
    // All signatures are computed, so that an answer takes equally long whichever of them is wrong.
    const wrong = this.#claims.filter(({ isSignatureValid: isTrue }) => !isTrue());
    if (wrong[0] !== undefined) {
      const sentence = `${wrong[0].headerName} does not fit the body and the secret of this group: give the program that posts the secret of the group`;
      throw new KlatchError('invalid_signature', { sentence });
    }
    this.#isVerified = this.#claims.length > 0;
  }

  /** Calls `update` with the whole body, then `verify`. Throws what `verify` throws. */
  verifyBody(body: Buffer): void {
    this.update(body);
    this.verify();
  }

  /** True once `verify` has succeeded for a post with a signature. */
  get isSignatureVerified(): boolean {
    return this.#isVerified;
  }

  #claimsOf(headers: IncomingHttpHeaders, secret: IncomingSecret, nowMs: number): SignatureClaim[] {
    const claims: SignatureClaim[] = [];
    let bodyDigest: (() => Buffer) | null = null;
    for (const { header, prefix } of BODY_HMAC_HEADERS) {
      const value = valueOf(headers, header);
      if (value === '' || value === prefix) continue;
      bodyDigest ??= this.#lazyBodyDigest(secret, '');
      const digestOnce = bodyDigest;
      claims.push({
        headerName: header,
        isSignatureValid: () => value.startsWith(prefix) && isHexOf(digestOnce(), value.slice(prefix.length)),
      });
    }
    const grafanaSignature = valueOf(headers, GRAFANA_HEADER);
    if (grafanaSignature !== '') {
      const time = valueOf(headers, GRAFANA_TIMESTAMP_HEADER);
      if (time !== '') requireNearTime(GRAFANA_TIMESTAMP_HEADER, time, nowMs);
      const computeDigest = this.#lazyBodyDigest(secret, time === '' ? '' : `${time}:`);
      claims.push({ headerName: GRAFANA_HEADER, isSignatureValid: () => isHexOf(computeDigest(), grafanaSignature) });
    }
    const gitlabToken = valueOf(headers, GITLAB_HEADER);
    if (gitlabToken !== '')
      claims.push({ headerName: GITLAB_HEADER, isSignatureValid: () => matchesSecretText(secret, gitlabToken) });
    const standardClaim = this.#standardClaim(headers, secret, nowMs);
    return standardClaim === null ? claims : [...claims, standardClaim];
  }

  /**
   * The claim of the headers of Standard Webhooks; null: there is none. An id and a time without a signature make a
   * claim that is false.
   */
  #standardClaim(headers: IncomingHttpHeaders, secret: IncomingSecret, nowMs: number): SignatureClaim | null {
    const [id, time, signatures] = ['webhook-id', 'webhook-timestamp', STANDARD_HEADER].map((name) =>
      valueOf(headers, name),
    ) as [string, string, string];
    if (signatures === '' && (id === '' || time === '')) return null;
    requireNearTime('webhook-timestamp', time, nowMs);
    const hmac = this.#hmac(secret.standardWebhooksKey, `${id}.${time}.`);
    const isSignatureValid = (): boolean => {
      const expected = Buffer.from(`v1,${hmac.digest('base64')}`);
      const sent = signatures.split(' ').map((signature) => Buffer.from(signature));
      return sent.filter((each) => each.length === expected.length && timingSafeEqual(each, expected)).length > 0;
    };
    return { headerName: STANDARD_HEADER, isSignatureValid };
  }

  /**
   * A function that computes the digest of the body when it is first called, and returns it again later: an HMAC gives
   * its digest only once, but several headers may hold it.
   */
  #lazyBodyDigest({ secretTextKey: textKey }: IncomingSecret, prefix: string): () => Buffer {
    const hmac = this.#hmac(textKey, prefix);
    let digest: Buffer | null = null;
    return () => (digest ??= hmac.digest());
  }

  #hmac(key: IncomingSecret['secretTextKey'], prefix: string): Hmac {
    const hmac = createHmac('sha256', key).update(prefix);
    this.#hmacs.push(hmac);
    return hmac;
  }
}

/**
 * The check of a post's signatures; null: the group has no secret, and signatures are not checked. Throws
 * `invalid_signature` for an unsigned post if the group demands signatures, or if senders of `format` sign. `format` is
 * the format that the address names.
 */
export function createPostSignature(
  { headers }: { readonly headers: IncomingHttpHeaders },
  secret: IncomingSecret | null,
  format: CallerFormat | null,
): PostSignature | null {
  if (secret === null) return null;
  const signature = new PostSignature(headers, secret);
  if (!signature.hasSignature) {
    if (secret.signedOnly) throw absentSignatureError('Every post into this group has');
    if (format !== null) requireSignatureOf(format);
  }
  return signature;
}

/** Throws `invalid_signature` if senders of this format sign their posts when they have a secret. */
export function requireSignatureOf({ name, isSignedBySenders = false }: CallerFormat): void {
  if (isSignedBySenders) throw absentSignatureError(`Posts of the format ${name} have`);
}

function absentSignatureError(sentenceBeginning: string): KlatchError {
  const sentence = `${sentenceBeginning} to be signed with the secret of the group, and this one has no signature: give the program that posts this secret`;
  return new KlatchError('invalid_signature', { sentence });
}

function valueOf(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name.toLowerCase()];
  return typeof value === 'string' ? value.trim() : '';
}

function isHexOf(digest: Buffer, hex: string): boolean {
  return HEX_DIGEST_PATTERN.test(hex) && timingSafeEqual(digest, Buffer.from(hex, 'hex'));
}

function matchesSecretText({ secretTextDigest: textDigest }: IncomingSecret, text: string): boolean {
  return timingSafeEqual(textDigest, createHash('sha256').update(text).digest());
}

function requireNearTime(header: string, unixSeconds: string, nowMs: number): void {
  const isNear =
    UNIX_TIME_PATTERN.test(unixSeconds) && Math.abs(Number(unixSeconds) - nowMs / 1_000) <= MAX_CLOCK_DIFFERENCE_S;
  if (isNear) return;
  const sentence = `${header} is absent or more than 5 minutes away from the clock of the server: set the clock of the program that posts`;
  throw new KlatchError('invalid_signature', { sentence });
}
