import { sign, type KeyObject } from 'node:crypto';

/** Makes a signed JWT (RFC 7519): RS256 with an RSA key, ES256 with a P-256 key. */
export function signJwt(header: { kid: string | null }, claims: object, key: KeyObject): string {
  const isRsa = key.asymmetricKeyType === 'rsa';
  const joseHeader = {
    alg: isRsa ? 'RS256' : 'ES256',
    typ: 'JWT',
    ...(header.kid === null ? {} : { kid: header.kid }),
  };
  const signingInput = [joseHeader, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const signature = sign('sha256', Buffer.from(signingInput), { key, dsaEncoding: 'ieee-p1363' });
  return `${signingInput}.${signature.toString('base64url')}`;
}
