import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/**
 * A request whose Signature Version 4 is verified as its documentation describes, since s3rver accepts any signature.
 * This file shares no code with the tested signer.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-auth-using-authorization-header.html
 */
export interface SignedRequest {
  readonly method: string;
  /** The path and the query as received. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Keys {
  readonly accessKey: string;
  readonly secretKey: string;
  readonly region: string;
}

const MAX_SKEW_MS = 15 * 60_000;

/** Verifies the signature. Null: it is valid; otherwise the error code that a store answers with. */
export function refuseSignature(request: SignedRequest, keys: Keys, nowMs: number): string | null {
  const url = new URL(request.target, 'http://unused');
  const isLink = url.searchParams.has('X-Amz-Signature');
  const given = isLink ? fromQuery(url) : fromHeader(request.headers);
  if (given === null) return 'AccessDenied';
  const [accessKey, day, region, service, end] = given.credential.split('/');
  if (accessKey !== keys.accessKey) return 'InvalidAccessKeyId';
  if (region !== keys.region || service !== 's3' || end !== 'aws4_request') return 'AuthorizationHeaderMalformed';
  if (!given.date.startsWith(day!)) return 'SignatureDoesNotMatch';
  const ageMs = nowMs - momentOf(given.date);
  if (isLink ? ageMs > given.expiresS * 1_000 : Math.abs(ageMs) > MAX_SKEW_MS) {
    return isLink ? 'AccessDenied' : 'RequestTimeTooSkewed';
  }
  const claimed = isLink ? 'UNSIGNED-PAYLOAD' : String(request.headers['x-amz-content-sha256']);
  const named = given.signedHeaders.split(';');
  if (!named.includes('host') || (!isLink && !named.includes('x-amz-content-sha256'))) return 'AccessDenied';
  const canonical = [
    request.method,
    url.pathname,
    canonicalQuery(url.search),
    ...named.map((name) => `${name}:${String(request.headers[name]).trim().replace(/ +/g, ' ')}`),
    '',
    given.signedHeaders,
    claimed,
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', given.date, scope, sha256(canonical)].join('\n');
  const key = [day!, region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${keys.secretKey}`);
  const right = hmac(key, text);
  const said = Buffer.from(given.signature, 'hex');
  if (said.length !== right.length || !timingSafeEqual(said, right)) return 'SignatureDoesNotMatch';
  if (!isLink && claimed !== 'UNSIGNED-PAYLOAD' && claimed !== sha256(request.body)) return 'XAmzContentSHA256Mismatch';
  return null;
}

interface Given {
  readonly credential: string;
  readonly signedHeaders: string;
  readonly signature: string;
  readonly date: string;
  readonly expiresS: number;
}

function fromHeader(headers: IncomingHttpHeaders): Given | null {
  const pattern = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;
  const [, credential, signedHeaders, signature] = pattern.exec(headers.authorization ?? '') ?? [];
  if (signature === undefined) return null;
  const date = String(headers['x-amz-date']);
  return { credential: credential!, signedHeaders: signedHeaders!, signature, date, expiresS: 0 };
}

function fromQuery({ searchParams }: URL): Given {
  const part = (name: string): string => searchParams.get(`X-Amz-${name}`) ?? '';
  return {
    credential: part('Credential'),
    signedHeaders: part('SignedHeaders'),
    signature: part('Signature'),
    date: part('Date'),
    expiresS: Number(part('Expires')),
  };
}

/**
 * The canonical query: sorted by name, names and values encoded as in RFC 3986; "+" does not stand for a space here.
 */
function canonicalQuery(search: string): string {
  const pairs = search.slice(1).split('&').filter(Boolean);
  return pairs
    .map((pair) => pair.split('='))
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name = '', value = '']) => [encode(decodeURIComponent(name)), encode(decodeURIComponent(value))] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

function momentOf(date: string): number {
  return Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
}

function sha256(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
