import { describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { signV1 } from '../../src/delivery/sign.ts';
import { newHookSecret, hookSecretKey } from '../../src/model/hook-secret.ts';

const now = Math.floor(Date.now() / 1000);
const body = '{"text":"größer als 😀"}';

function verify(secret: string, signature: string, changed = body): unknown {
  const headers = { 'webhook-id': '1_2_3', 'webhook-timestamp': String(now), 'webhook-signature': signature };
  return new Webhook(secret).verify(changed, headers);
}

describe('the signature of a delivery', () => {
  test('is accepted by the Standard Webhooks library', () => {
    const secret = newHookSecret();
    expect(verify(secret, signV1([hookSecretKey(secret)], '1_2_3', now, Buffer.from(body)))).toEqual(JSON.parse(body));
  });

  test('holds for both secrets while one replaces the other', () => {
    const [current, old] = [newHookSecret(), newHookSecret()];
    const signature = signV1([hookSecretKey(current), hookSecretKey(old)], '1_2_3', now, Buffer.from(body));
    expect(() => verify(current, signature)).not.toThrow();
    expect(() => verify(old, signature)).not.toThrow();
  });

  test('does not hold for another body, secret or id', () => {
    const secret = newHookSecret();
    const signature = signV1([hookSecretKey(secret)], '1_2_3', now, Buffer.from(body));
    expect(() => verify(secret, signature, body.replace('😀', '!'))).toThrow();
    expect(() => verify(newHookSecret(), signature)).toThrow();
    expect(() => verify(secret, signV1([hookSecretKey(secret)], '1_2_4', now, Buffer.from(body)))).toThrow();
  });

  test('uses a secret of 24 to 64 random bytes', () => {
    const secret = newHookSecret();
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]+=*$/);
    expect(hookSecretKey(secret).symmetricKeySize).toBe(32);
    expect(newHookSecret()).not.toBe(secret);
  });
});
