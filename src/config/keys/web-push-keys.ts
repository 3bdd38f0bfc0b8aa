import { generateKeyPairSync } from 'node:crypto';
import { isIP } from 'node:net';

/**
 * A key pair for VAPID (RFC 8292) in base64url: the public key is the uncompressed point (65 bytes), the private key
 * the number (32 bytes).
 */
export interface WebPushKeys {
  readonly public: string;
  readonly private: string;
}

const UNCOMPRESSED_POINT_PREFIX = 4;

/** Creates a pair of P-256 keys for web push. */
export function createWebPushKeys(): WebPushKeys {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  // In JWK format, `x`, `y` and `d` always have 32 bytes each, with leading zeros.
  const { x, y, d } = privateKey.export({ format: 'jwk' }) as { x: string; y: string; d: string };
  const point = [Buffer.from([UNCOMPRESSED_POINT_PREFIX]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')];
  return { public: Buffer.concat(point).toString('base64url'), private: d };
}

/**
 * The default contact for push services. It is the server's public URL if that is https, which they require; otherwise
 * the postmaster's address at its host.
 */
export function webPushSubject(baseUri: string | null): string {
  const url = baseUri === null ? null : URL.parse(baseUri);
  if (url?.protocol === 'https:') return url.origin;
  const host = url?.hostname ?? '';
  const isName = host !== '' && !host.startsWith('[') && isIP(host) === 0;
  return `mailto:postmaster@${isName ? host : 'localhost'}`;
}
