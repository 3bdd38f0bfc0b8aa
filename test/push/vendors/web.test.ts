import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import webPush from 'web-push';
import { AddressPolicy } from '../../../src/outbound/address-policy.ts';
import { DnsResolver } from '../../../src/outbound/dns-resolver.ts';
import type { WebSubscription } from '../../../src/model/device.ts';
import type { ConversationId } from '../../../src/model/ids.ts';
import type { PushNotification, PushOutcome } from '../../../src/push/vendors/vendor.ts';
import { WebVendor } from '../../../src/push/vendors/web.ts';
import { note, times } from '../keys.ts';
import { WebPushReceiver } from '../web-push-receiver.ts';

const DELIVERED = { outcome: 'delivered' } as const;
let vapid: webPush.VapidKeys;
let receiver: WebPushReceiver;
let browser: WebSubscription;
const closing: (() => Promise<void>)[] = [];

beforeAll(() => {
  vapid = webPush.generateVAPIDKeys();
});
beforeEach(async () => {
  receiver = await WebPushReceiver.start(vapid.publicKey);
  browser = await receiver.subscribe();
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await receiver.stop();
});

interface Made {
  readonly allow?: readonly string[];
  readonly timeoutMs?: number;
  readonly keys?: webPush.VapidKeys;
  readonly vapidSubject?: string;
}

function vendor({ allow = ['loopback'], timeoutMs = 5_000, keys = vapid, vapidSubject }: Made = {}): WebVendor {
  const made = new WebVendor(
    { public: keys.publicKey, private: keys.privateKey, vapidSubject: vapidSubject ?? 'mailto:klatch@example.org' },
    { timeoutMs, maxInFlight: 100, userAgent: 'Klatch/0' },
    {
      policy: new AddressPolicy(allow),
      lookup: new DnsResolver({
        timeoutMs: 1_000,
        successCacheMs: 1_000,
        failureCacheMs: 1_000,
        maxConcurrentLookups: 2,
      }),
    },
  );
  closing.push(() => made.stop());
  return made;
}

const send = (to: WebVendor, changes: Partial<PushNotification> = {}, at: unknown = browser): Promise<PushOutcome> =>
  to.send({ token: typeof at === 'string' ? at : JSON.stringify(at), app: null }, note(changes));

describe('the driver of Web Push', () => {
  test('sends what only the browser can read', async () => {
    expect(await send(vendor(), { urgent: true })).toEqual(DELIVERED);
    expect(receiver.faults).toEqual([]);
    const [push] = receiver.pushes;
    expect(push!.body).toEqual({
      title: 'Lunch',
      text: 'Anna: soup today',
      conversation: 7,
      first_seq: 3,
      last_seq: 4,
      unread: 2,
      urgent: true,
    });
    expect(push!.headers).toMatchObject({ urgency: 'high', 'user-agent': 'Klatch/0' });
    expect(Number(push!.headers['ttl'])).toBeGreaterThan(3_500);
  });

  test('says nothing about the conversation but that it is the same one', async () => {
    const to = vendor();
    await send(to);
    await send(to, { text: null, accountUnreadCount: null });
    await send(to, { conversationId: 8 as ConversationId });
    const topics = receiver.pushes.map(({ headers }) => headers['topic']);
    expect(topics[0]).toBe(topics[1]);
    expect(topics[2]).not.toBe(topics[0]);
    expect(receiver.pushes[1]!.body).not.toHaveProperty('text');
    expect(receiver.pushes[1]!.headers['urgency']).toBe('normal');
  });

  test('signs once for a service, whatever it sends there', async () => {
    const to = vendor();
    const other = await receiver.subscribe('browser-2');
    expect(await Promise.all([send(to), send(to), send(to, {}, other)])).toEqual(times(3, DELIVERED));
    expect(receiver.authorizations.size).toBe(1);
  });

  test.each(['a', '"', '漢', '👩‍👩‍👧‍👦'])('cuts a long text to the bound of a record: %s', async (part) => {
    const to = vendor();
    for (const count of [1_200, 40_000]) expect(await send(to, { text: part.repeat(count) })).toEqual(DELIVERED);
    expect(receiver.faults).toEqual([]);
    for (const { plain, body } of receiver.pushes) {
      expect(plain.length).toBeLessThanOrEqual(3_993);
      const text = (body.text as string).replace(/…$/, '');
      expect(text).toBe(part.repeat(text.length / part.length));
    }
  });

  test('sends less to a service that finds it too large, then gives up', async () => {
    const to = vendor();
    const lengths: number[] = [];
    receiver.script = ({ plain }) => {
      lengths.push(plain.length);
      return plain.length > 2_000 ? 413 : undefined;
    };
    expect(await send(to, { text: 'x'.repeat(5_000) })).toEqual(DELIVERED);
    expect(lengths).toEqual([3_993, 1_024]);
    receiver.script = () => 413;
    expect(await send(to)).toEqual({ outcome: 'refused', category: 'too large', code: 413 });
  });

  test.each<[string, (subscription: WebSubscription) => unknown]>([
    ['is no JSON', () => 'hello'],
    ['has no keys', ({ endpoint }) => ({ endpoint })],
    ['has an address that is none', (at) => ({ ...at, endpoint: 'file:///etc/passwd' })],
  ])('forgets a subscription that %s', async (_name, change) => {
    expect(await send(vendor(), {}, change(browser))).toEqual({
      outcome: 'unregistered',
      category: 'subscription',
      code: null,
    });
    expect(receiver.pushes).toHaveLength(0);
  });

  test.each<[string, (subscription: WebSubscription) => unknown]>([
    [
      'a key that is no point',
      (at) => ({ ...at, keys: { ...at.keys, p256dh: Buffer.alloc(65, 4).toString('base64url') } }),
    ],
    ['a short secret', (at) => ({ ...at, keys: { ...at.keys, auth: 'AAAA' } })],
  ])('refuses a push that cannot be encrypted, as for %s, and forgets nobody', async (_name, change) => {
    expect(await send(vendor(), {}, change(browser))).toEqual({
      outcome: 'refused',
      category: 'subscription',
      code: null,
    });
    expect(receiver.pushes).toHaveLength(0);
  });

  test('connects to no address that the policy refuses', async () => {
    expect(await send(vendor({ allow: [] }))).toEqual({ outcome: 'refused', category: 'address policy', code: null });
    expect(receiver.pushes).toHaveLength(0);
  });

  test('says what is wrong with its keys, and removes nobody for it', async () => {
    const keys = { ...vapid, publicKey: webPush.generateVAPIDKeys().publicKey };
    const to = vendor({ keys });
    expect(to.problem).toMatch(/^services\.web-push\.private does not belong to services\.web-push\.public/);
    expect(await send(to)).toMatchObject({ outcome: 'failed', category: 'key', vendorWide: true });
    expect(vendor({ vapidSubject: 'https://[' }).problem).toMatch(/^services\.web-push\.subject/);
  });
});

describe('an answer of a push service', () => {
  test.each<[number, object]>([
    [200, DELIVERED],
    [201, DELIVERED],
    [202, DELIVERED],
    [404, { outcome: 'unregistered', category: 'unregistered', code: 404 }],
    [410, { outcome: 'unregistered', category: 'unregistered', code: 410 }],
    [400, { outcome: 'refused', category: 'request', code: 400 }],
    [403, { outcome: 'refused', category: 'key', code: 403 }],
    [429, { outcome: 'failed', category: 'quota', code: 429, retryAfterMs: 60_000, vendorWide: false }],
    [500, { outcome: 'failed', category: 'status', code: 500, retryAfterMs: null, vendorWide: false }],
    [503, { outcome: 'failed', category: 'status', code: 503, retryAfterMs: null, vendorWide: false }],
  ])('%i', async (status, expected) => {
    receiver.script = () => status;
    expect(await send(vendor())).toEqual(expected);
  });

  test('that is a redirect is not followed', async () => {
    receiver.script = (_push, res) =>
      res.writeHead(307, { location: `${receiver.origin}/push/browser-1` }).end() === res || true;
    expect(await send(vendor())).toMatchObject({ outcome: 'failed', category: 'redirect', code: 307 });
    expect(receiver.pushes).toHaveLength(1);
  });

  test('that names a time is waited for', async () => {
    receiver.script = (_push, res) => res.writeHead(429, { 'retry-after': '7' }).end() === res || true;
    expect(await send(vendor())).toMatchObject({ category: 'quota', retryAfterMs: 7_000 });
    receiver.script = (_push, res) => res.writeHead(503, { 'retry-after': '9999999' }).end() === res || true;
    expect(await send(vendor())).toMatchObject({ retryAfterMs: 3_600_000 });
  });

  test('that never ends is cut, and a success all the same', async () => {
    receiver.script = (_push, res) => {
      res.writeHead(201);
      const more = (): void => void (res.destroyed || res.write('x'.repeat(16_384), more));
      more();
      return true;
    };
    expect(await send(vendor())).toEqual(DELIVERED);
  });
});

describe('a push service that does not answer', () => {
  test('lets a push fail in time, and is left alone for a while after some of them', async () => {
    const to = vendor({ timeoutMs: 1_000 });
    receiver.script = () => true;
    for (let n = 0; n < 5; n += 1) {
      expect(await send(to)).toEqual({
        outcome: 'failed',
        category: 'timeout',
        code: null,
        retryAfterMs: null,
        vendorWide: false,
      });
    }
    expect(await send(to)).toMatchObject({ outcome: 'failed', category: 'resting', vendorWide: false });
    await receiver.arrived.reached(5);
    expect(receiver.pushes).toHaveLength(5);
  });

  test('is no matter of the others', async () => {
    const other = await WebPushReceiver.start(vapid.publicKey);
    closing.push(() => other.stop());
    const to = vendor({ timeoutMs: 2_500 });
    receiver.script = () => true;
    const hanging = Array.from({ length: 8 }, () => send(to));
    expect(await send(to, {}, await other.subscribe())).toEqual(DELIVERED);
    for (const outcome of await Promise.all(hanging)) expect(outcome).toMatchObject({ category: 'timeout' });
    expect(await send(to, {}, await other.subscribe('browser-2'))).toEqual(DELIVERED);
  });

  test('or answers garbage fails', async () => {
    receiver.script = (_push, res) => res.socket!.end('HTTP/9.9 what\r\n\r\n') !== null || true;
    expect(await send(vendor())).toMatchObject({ outcome: 'failed', category: 'connection', vendorWide: false });
  });
});
