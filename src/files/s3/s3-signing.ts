import { AwsV4Signer } from 'aws4fetch';
import type { S3Config } from '../../config/services.ts';

/** The SHA-256 of an empty body, in hexadecimal. */
const EMPTY_BODY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
/** The longest time, in seconds, for which S3 accepts a signed URL: a week. */
const MAX_DOWNLOAD_URL_TTL_S = 604_800;
/** The headers of the store's answer that a signed URL can set. */
const OVERRIDABLE_RESPONSE_HEADERS = ['content-type', 'content-disposition', 'cache-control'] as const;
const GENERAL_ENDPOINT = 's3.amazonaws.com';

/** A request to S3, for the bucket or for an object in it. */
export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** The object's key, which has only characters of base64url and "/"; null: the request is for the bucket itself. */
  readonly key: string | null;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /**
   * True: the answer is read only as fast as a client downloads it, so the request uses the connections for downloads.
   */
  readonly isDownload?: boolean;
}

/**
 * Signs requests (Signature Version 4) with aws4fetch's signer; undici sends them, since it takes buffers and returns
 * streams. The body's hash is signed as well, so that the store refuses a damaged body.
 */
export class S3RequestSigner {
  readonly #config: S3Config;
  readonly #baseUrl: URL;
  /**
   * Signing keys that aws4fetch derived, one for each day. The map is replaced now and then, so that it does not grow
   * forever.
   */
  #signingKeyCache = new Map<string, ArrayBuffer>();

  constructor(config: S3Config) {
    this.#config = config;
    this.#baseUrl = baseUrlOf(config);
  }

  /** The store's host, for messages to people. */
  get host(): string {
    return this.#baseUrl.host;
  }

  async sign(request: S3Request): Promise<{ url: string; headers: Record<string, string> }> {
    const { method, key, query = {}, headers = {}, body } = request;
    const hash = body === undefined ? EMPTY_BODY_SHA256 : await sha256Hex(body);
    const signer = this.#createSigner({
      method,
      url: this.#url(key, query),
      headers: { ...headers, 'x-amz-content-sha256': hash },
    });
    const signedRequest = await signer.sign();
    return { url: this.#withEncodedSpaces(signedRequest.url), headers: Object.fromEntries(signedRequest.headers) };
  }

  /**
   * A signed URL with which any client can get the file for `forMs` milliseconds. Headers that the store cannot set are
   * left out.
   */
  async signDownloadUrl(
    key: string,
    { forMs, headers }: { forMs: number; headers: Readonly<Record<string, string>> },
  ): Promise<string> {
    const query: Record<string, string> = {};
    for (const [name, value] of Object.entries(headers)) {
      const overridableHeader = OVERRIDABLE_RESPONSE_HEADERS.find((header) => header === name.toLowerCase());
      if (overridableHeader !== undefined) query[`response-${overridableHeader}`] = value;
    }
    query['X-Amz-Expires'] = String(Math.min(MAX_DOWNLOAD_URL_TTL_S, Math.max(1, Math.ceil(forMs / 1_000))));
    const signer = this.#createSigner({ method: 'GET', url: this.#url(key, query), signQuery: true });
    return this.#withEncodedSpaces((await signer.sign()).url);
  }

  #createSigner(signerInput: {
    method: string;
    url: string;
    headers?: Record<string, string>;
    signQuery?: boolean;
  }): AwsV4Signer {
    const { accessKey, secretKey, region } = this.#config;
    if (this.#signingKeyCache.size > 10) this.#signingKeyCache = new Map();
    return new AwsV4Signer({
      ...signerInput,
      accessKeyId: accessKey,
      secretAccessKey: secretKey,
      service: 's3',
      region,
      cache: this.#signingKeyCache,
    });
  }

  #url(key: string | null, query: Readonly<Record<string, string>>): string {
    const { bucket, pathStyle } = this.#config;
    const url = new URL(this.#baseUrl);
    const path = [...(pathStyle ? [bucket] : []), ...(key === null ? [] : [key])].join('/');
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${path}`;
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url.href;
  }

  /**
   * Writes spaces in the query as "%20", as they were signed. `URL` writes "+", which some stores do not read as a
   * space.
   */
  #withEncodedSpaces(url: URL): string {
    return `${url.origin}${url.pathname}${url.search.replaceAll('+', '%20')}`;
  }
}

/** The scheme, host and port of the signed URLs of a bucket. */
export function bucketOriginOf(config: S3Config): string {
  return baseUrlOf(config).origin;
}

function baseUrlOf({ s3Endpoint: endpoint, region, bucket, pathStyle }: S3Config): URL {
  const base = new URL(endpoint);
  // Amazon's general endpoint serves only the first region.
  if (base.hostname === GENERAL_ENDPOINT && region !== 'us-east-1') base.hostname = `s3.${region}.amazonaws.com`;
  if (!pathStyle) base.hostname = `${bucket}.${base.hostname}`;
  return base;
}

/** Computes the SHA-256 in libuv's threads, since the hash of a part takes some milliseconds. */
async function sha256Hex(body: Buffer): Promise<string> {
  return Buffer.from(await crypto.subtle.digest('SHA-256', body as Buffer<ArrayBuffer>)).toString('hex');
}
