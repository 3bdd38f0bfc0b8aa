import { createECDH, randomBytes } from 'node:crypto';

/** A browser's push subscription in the form of `PushSubscription.toJSON()`, with encryption keys of its own. */
export interface TestSubscription {
  readonly endpoint: string;
  readonly expirationTime: null;
  readonly keys: { readonly p256dh: string; readonly auth: string };
}

export function newSubscription(endpoint = `https://push.example/${randomBytes(8).toString('hex')}`): TestSubscription {
  const keys = createECDH('prime256v1');
  return {
    endpoint,
    expirationTime: null,
    keys: {
      p256dh: keys.generateKeys().toString('base64url'),
      auth: randomBytes(16).toString('base64url'),
    },
  };
}

/** Makes a VAPID key pair for the web pushes of one test. */
export function newWebPush(): { public: string; private: string; vapidSubject: string } {
  const pair = createECDH('prime256v1');
  const publicKey = pair.generateKeys();
  // One private key in 256 begins with a zero byte, which OpenSSL omits and which is added here.
  const privateKey = pair.getPrivateKey();
  return {
    public: publicKey.toString('base64url'),
    private: Buffer.concat([Buffer.alloc(32 - privateKey.length), privateKey]).toString('base64url'),
    vapidSubject: 'mailto:admin@klatch.example',
  };
}
