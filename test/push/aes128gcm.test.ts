import { describe, expect, test } from '@jest/globals';
import { webcrypto } from 'node:crypto';
import { openAes128gcm } from './aes128gcm.ts';

const { subtle } = webcrypto;

/** The example of RFC 8291, 5 and appendix A. */
const VECTOR = {
  plain: 'When I grow up, I want to be a watermelon',
  private: 'q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94',
  public: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
  auth: 'BTBZMqHH6r4Tts7J_aSIgg',
  body:
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl' +
    '7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
};

async function browserOf({ private: d, public: point, auth }: typeof VECTOR) {
  const bytes = Buffer.from(point, 'base64url');
  const curve = { name: 'ECDH', namedCurve: 'P-256' } as const;
  const [x, y] = [bytes.subarray(1, 33), bytes.subarray(33)].map((half) => half.toString('base64url'));
  const jwk = { kty: 'EC', crv: 'P-256', x: x!, y: y!, d };
  const privateKey = await subtle.importKey('jwk', jwk, curve, true, ['deriveBits']);
  const publicKey = await subtle.importKey('raw', bytes, curve, true, []);
  return { keys: { privateKey, publicKey }, auth: Buffer.from(auth, 'base64url') };
}

describe('what the tests read Web Push with', () => {
  test('reads the example of RFC 8291', async () => {
    const plain = await openAes128gcm(Buffer.from(VECTOR.body, 'base64url'), await browserOf(VECTOR));
    expect(plain.toString('utf8')).toBe(VECTOR.plain);
  });

  test('does not read it with another secret', async () => {
    const browser = { ...(await browserOf(VECTOR)), auth: Buffer.alloc(16) };
    await expect(openAes128gcm(Buffer.from(VECTOR.body, 'base64url'), browser)).rejects.toThrow();
  });
});
